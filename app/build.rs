//! Builds the page in `web/` and leaves it in `OUT_DIR`, from where it is embedded. Where there is no Node, or the build fails, the
//! program is built all the same: the page then says what is missing. `HATCHERY_PAGE=required` makes that a failure, `HATCHERY_PAGE=none`
//! leaves the page out. Also says how the program is linked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the page is made of. A change of any of it makes it anew.
const INPUTS: [&str; 7] =
    ["index.html", "package.json", "package-lock.json", ".npmrc", "tsconfig.json", "vite.config.ts", "src"];
const PUBLIC: &str = "public";
/// Says of which lock file the installed packages are.
const STAMP: &str = "node_modules/.hatchery-lock";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=HATCHERY_PAGE");
    link();
    let web = PathBuf::from(var("CARGO_MANIFEST_DIR")).join("../web");
    let page = PathBuf::from(var("OUT_DIR")).join("page");
    for input in INPUTS.iter().chain([&PUBLIC]) {
        println!("cargo::rerun-if-changed={}", web.join(input).display());
    }
    let wish = std::env::var("HATCHERY_PAGE").unwrap_or_default();
    let built = match wish.as_str() {
        "none" => Err("it was left out, since HATCHERY_PAGE is `none`".to_owned()),
        _ => build(&web, &page),
    };
    if let Err(why) = built {
        assert!(wish != "required", "the page cannot be built: {why}");
        if wish != "none" {
            println!(
                "cargo::warning=the program is built without its page: {}",
                why.lines().next().unwrap_or_default()
            );
        }
        // An older page would not fit the program.
        drop(fs::remove_dir_all(&page));
        fs::create_dir_all(&page).expect("OUT_DIR can be written");
        fs::write(page.join("missing.txt"), why).expect("OUT_DIR can be written");
    }
}

/// The libraries that the standard library asks the linker for, each with what takes its place in a program that is linked statically.
const ARCHIVES: [(&str, &str); 7] = [
    ("c", "GROUP ( libc.a libgcc.a libgcc_eh.a )"),
    ("gcc_s", "INPUT ( libgcc_eh.a )"),
    ("m", "INPUT ( libm.a )"),
    ("rt", "INPUT ( librt.a )"),
    ("pthread", "INPUT ( libpthread.a )"),
    ("dl", "INPUT ( libdl.a )"),
    ("util", "INPUT ( libutil.a )"),
];

/// With this function the standard library starts a process in another folder without a copy of the daemon's page table. The standard library
/// refers to it as a weak symbol, and the linker takes no member out of an archive for a weak symbol.
const SPAWN_IN_FOLDER: &str = "posix_spawn_file_actions_addchdir_np";

/// Most commands take less time than the loader did, so the program needs none: docs/decisions/0081 and 0170. The linker writes the
/// addresses, and the C library is part of the program if its archives are installed.
fn link() {
    if var("CARGO_CFG_TARGET_OS") != "linux" || var("CARGO_CFG_TARGET_ENV") != "gnu" {
        return;
    }
    println!("cargo::rustc-link-arg-bins=-no-pie");
    let is_native = var("HOST") == var("TARGET");
    if is_native && ["libc.a", "libm.a", "libgcc_eh.a"].into_iter().all(has_archive) {
        let folder = PathBuf::from(var("OUT_DIR")).join("archives");
        fs::create_dir_all(&folder).expect("OUT_DIR can be written");
        for (library, script) in ARCHIVES {
            // The standard library asks for shared libraries. These scripts, which the linker finds first, lead to the archives.
            fs::write(folder.join(format!("lib{library}.so")), script).expect("OUT_DIR can be written");
        }
        println!("cargo::rustc-link-arg-bins=-static");
        println!("cargo::rustc-link-arg-bins=-Wl,--undefined={SPAWN_IN_FOLDER}");
        println!("cargo::rustc-link-arg-bins=-L{}", folder.display());
    }
}

/// The compiler that links the program repeats the bare name of a library that it does not know.
fn has_archive(name: &str) -> bool {
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let said = Command::new(linker).arg(format!("-print-file-name={name}")).output();
    said.is_ok_and(|said| Path::new(String::from_utf8_lossy(&said.stdout).trim()).is_absolute())
}

fn build(web: &Path, page: &Path) -> Result<(), String> {
    let npm = Command::new("npm").arg("--version").output();
    if !npm.is_ok_and(|output| output.status.success()) {
        return Err("npm was not found; it comes with Node.js 20.19 or newer".into());
    }
    // Several builds may share one source folder, each with a target folder of its own.
    let _turn = turn(web)?;
    install(web)?;
    run(Command::new("npm").args(["run", "--silent", "build", "--", "--emptyOutDir", "--outDir"]).arg(page), web)
}

/// Held until it is dropped.
fn turn(web: &Path) -> Result<File, String> {
    let modules = web.join("node_modules");
    fs::create_dir_all(&modules).map_err(|error| format!("{}: {error}", modules.display()))?;
    // Not in node_modules: `npm ci` empties it.
    let lock = std::env::temp_dir().join(format!("hatchery-page-{:x}.lock", hash(web.to_string_lossy().as_bytes())));
    let file = File::create(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    file.lock().map_err(|error| format!("{}: {error}", lock.display()))?;
    Ok(file)
}

/// Installs what the lock file names, unless it is there.
fn install(web: &Path) -> Result<(), String> {
    let stamp = web.join(STAMP);
    let lock = fs::read(web.join("package-lock.json")).map_err(|error| format!("package-lock.json: {error}"))?;
    let wanted = format!("{:x}", hash(&lock));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    run(Command::new("npm").args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]), web)?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn run(command: &mut Command, web: &Path) -> Result<(), String> {
    let output = command.current_dir(web).env_remove("NODE_OPTIONS").output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    let tail: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = tail[tail.len().saturating_sub(12)..].join("\n");
    let words: Vec<_> = command.get_args().take(2).map(|word| word.to_string_lossy().into_owned()).collect();
    Err(format!("`npm {}` failed ({})\n{tail}", words.join(" "), output.status))
}

/// FNV-1a: tells one lock file from another, and keeps nothing secret.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn var(name: &str) -> String {
    std::env::var(name).expect("cargo sets it")
}
