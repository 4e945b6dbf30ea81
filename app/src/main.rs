//! The `hatchery` program.

fn main() -> std::process::ExitCode {
    hatchery::cli::main()
}
