//! The policies and the rules about permissions, as tables: what is allowed, denied or asked.

use hatchery_core::permission::PermissionPolicy::{All, Ask, Edits, None as Nothing};
use hatchery_core::permission::{
    Access, DecidedBy, PermissionDecision, PermissionPolicy, PermissionRequest, PermissionRule, decide,
};

const FOLDER: &str = "/home/dev/.hatchery/worktrees/q/steps/a";
const WARD: &str = "cargo test --all";

fn request(access: Access) -> PermissionRequest {
    let tool = match access {
        Access::Read { .. } => "Read",
        Access::Edit { .. } => "Edit",
        Access::Execute { .. } => "Bash",
        Access::Other => "WebFetch",
        Access::OwnTool => "signal-back",
        Access::NotOffered => "fs/read_text_file",
    };
    PermissionRequest {
        request: "r".into(),
        tool: tool.into(),
        tool_use: None,
        input: "{}".into(),
        access,
        folder: Some(FOLDER.into()),
    }
}

fn edit(path: &str) -> PermissionRequest {
    request(Access::Edit { path: path.into() })
}

fn read(path: &str) -> PermissionRequest {
    request(Access::Read { path: path.into() })
}

fn command(command: &str) -> PermissionRequest {
    request(Access::Execute { command: command.into() })
}

fn allowed(policy: PermissionPolicy, rules: &[PermissionRule], request: &PermissionRequest) -> Option<bool> {
    decide(policy, rules, Some(WARD), request).map(|(decision, _)| decision == PermissionDecision::Allow)
}

#[test]
fn each_policy_has_its_own_answer() {
    let inside = format!("{FOLDER}/src/lib.rs");
    for (request, in_order) in [
        //                              ask   edits       all         none
        (edit(&inside), [None, Some(true), Some(true), Some(false)]),
        (read(&inside), [None, Some(true), Some(true), Some(false)]),
        (edit("src/lib.rs"), [None, Some(true), Some(true), Some(false)]),
        (edit("/etc/passwd"), [None, None, Some(true), Some(false)]),
        (read("/etc/passwd"), [None, None, Some(true), Some(false)]),
        (command(WARD), [None, Some(true), Some(true), Some(false)]),
        (command("git diff HEAD~1"), [None, Some(true), Some(true), Some(false)]),
        (command("rm -rf src"), [None, None, Some(true), Some(false)]),
        (request(Access::Other), [None, None, Some(true), Some(false)]),
        (request(Access::OwnTool), [Some(true); 4]),
        (request(Access::NotOffered), [Some(false); 4]),
    ] {
        for (policy, expected) in [Ask, Edits, All, Nothing].into_iter().zip(in_order) {
            assert_eq!(allowed(policy, &[], &request), expected, "{policy}: {request:?}");
        }
    }
}

#[test]
fn a_denial_tells_the_agent_why() {
    let Some((PermissionDecision::Deny { reason }, DecidedBy::Policy)) = decide(Nothing, [], None, &edit("a")) else {
        panic!("it is denied by the policy")
    };
    assert!(reason.contains("`none`"), "{reason}");
}

#[test]
fn a_path_cannot_leave_its_folder() {
    for (path, inside) in [
        ("a", true),
        ("./a/../b", true),
        ("a/b/c", true),
        ("..", false),
        ("../b/x", false),
        ("a/../../x", false),
        ("/", false),
        ("/home/dev/.hatchery/worktrees/q/steps/ab/x", false),
        ("/home/dev/.hatchery/worktrees/q/steps/a/../a/x", true),
        ("/home/dev/.hatchery/worktrees/q/steps/a/../b/x", false),
    ] {
        assert_eq!(allowed(Edits, &[], &edit(path)), inside.then_some(true), "{path}");
    }
}

#[test]
fn what_could_give_more_rights_is_asked_for_also_inside_of_the_folder() {
    for path in [
        ".git/hooks/pre-commit",
        ".claude/settings.json",
        "sub/.git/config",
        ".mcp.json",
        ".hatchery/token",
        ".codex/config.toml",
        "opencode.json",
    ] {
        assert_eq!(allowed(Edits, &[], &edit(path)), None, "{path}");
        assert_eq!(allowed(Edits, &[PermissionRule::Edit { below: None }], &edit(path)), None, "{path}");
        assert_eq!(allowed(Edits, &[], &read(path)), Some(true), "reading {path} changes nothing");
    }
}

#[test]
fn a_process_without_a_folder_asks() {
    let request = PermissionRequest { folder: None, ..edit("/home/dev/a") };
    assert_eq!(allowed(Edits, &[], &request), None);
}

#[test]
fn only_plain_looking_is_allowed_unasked() {
    for (text, looks) in [
        ("git status", true),
        ("git log --oneline -5", true),
        ("git show HEAD:src/lib.rs", true),
        ("ls -la src", true),
        ("cat src/lib.rs", true),
        ("grep -rn needle src", true),
        ("git push", false),
        ("git -c core.pager=x diff", false),
        ("git diff --output=x", false),
        ("git diff; rm x", false),
        ("cat a > b", false),
        ("cat a | sh", false),
        ("cat $HOME/x", false),
        ("cat `x`", false),
        ("ls\nrm x", false),
        ("cat /etc/passwd", false),
        ("cat ../../x", false),
        ("cat ~/x", false),
        ("grep --file=/etc/passwd a", false),
        ("lsof", false),
        ("", false),
    ] {
        assert_eq!(allowed(Edits, &[], &command(text)), looks.then_some(true), "{text:?}");
    }
}

#[test]
fn a_rule_allows_what_is_like_the_request_it_was_made_for() {
    let other = PermissionRequest { tool: "WebSearch".into(), ..request(Access::Other) };
    for (made_for, covers, not) in [
        (command("npm test"), command("npm test"), command("npm test; rm x")),
        (edit("src/a"), edit("docs/b"), edit("/etc/a")),
        (edit("/etc/a"), edit("/etc/b/c"), edit("/usr/a")),
        (edit(".git/config"), edit(".git/hooks/x"), edit("/home/dev/.git/config")),
        (read("/usr/share/x"), read("/usr/share/y"), read("/usr/lib/y")),
        (read("/usr/share/x"), read("/usr/share/x"), edit("/usr/share/x")),
        (request(Access::Other), request(Access::Other), other),
    ] {
        let rule = PermissionRule::of(&made_for);
        assert!(rule.covers(&made_for) && rule.covers(&covers), "{rule}");
        assert!(!rule.covers(&not), "{rule} covers {not:?}");
        assert_eq!(decide(Ask, [&rule], None, &made_for), Some((PermissionDecision::Allow, DecidedBy::Rule)));
        assert_eq!(allowed(Nothing, &[rule], &made_for), Some(false), "`none` is stronger than a rule");
    }
}
