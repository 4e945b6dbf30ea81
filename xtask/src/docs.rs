//! `cargo xtask docs`: writes the generated part of the reference pages (`docs/commands.md`, `docs/http.md`), and `web/openapi.json`. The
//! generators are tests of the app, which fail when a file is not current.

use crate::Failure;
use crate::command::{self, cargo};

pub fn run() -> Result<(), Failure> {
    let tests = ["reference::", "the_page_is_made_for_this_document"];
    command::run(cargo().args(["test", "-p", "hatchery", "--test", "it", "--"]).args(tests).env("HATCHERY_BLESS", "1"))
}
