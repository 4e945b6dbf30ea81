//! Signals as the real CLI takes them: SIGINT breaks the turn off and ends the process well, SIGTERM and SIGHUP end it with
//! 128 and their number.

use super::inbox::{Interrupt, PlayerInbox};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// What is still listened to.
#[derive(Debug, Default)]
pub struct Ears(AtomicU8);

const ALL: u8 = 0;
const ONLY_TERM: u8 = 1;
const NONE: u8 = 2;

impl Ears {
    /// From now on nothing is heard, except SIGTERM if that is wished for.
    pub fn close(&self, term_too: bool) {
        self.0.store(if term_too { NONE } else { ONLY_TERM }, Ordering::Relaxed);
    }

    fn hear(&self, faintest: u8) -> bool {
        self.0.load(Ordering::Relaxed) <= faintest
    }
}

/// From here on signals are heard, by a thread of their own: the player may be asleep.
pub fn attend(inbox: &Arc<PlayerInbox>) -> io::Result<Arc<Ears>> {
    let ears = Arc::new(Ears::default());
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let (mut int, mut term, mut hup) = {
        let _within = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?)
    };
    let (inbox, open) = (Arc::clone(inbox), Arc::clone(&ears));
    let listen = async move {
        loop {
            tokio::select! {
                Some(()) = int.recv() => if open.hear(ALL) { inbox.interrupt(Interrupt::Signal) },
                Some(()) = term.recv() => if open.hear(ONLY_TERM) { std::process::exit(128 + 15) },
                Some(()) = hup.recv() => if open.hear(ALL) { std::process::exit(128 + 1) },
                else => return,
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listen))?;
    Ok(ears)
}
