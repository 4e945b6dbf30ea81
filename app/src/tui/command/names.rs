//! The names of all commands, and the nearest one to what was written.

/// A name is suggested from this likeness on.
const LIKE: f64 = 0.8;

/// A command: its name, what follows it, and what it does.
pub const NAMES: [(&str, &str, &str); 41] = [
    ("say", "AGENT TEXT", "say something to an agent, without answering"),
    ("answer", "[#ID] TEXT", "answer a question"),
    ("send", "AGENT TEXT", "send a mail"),
    ("check-mail", "", "your unread mail"),
    ("read-mail", "[#ID]", "read the oldest mail, or this one"),
    ("wait", "[AGENT…]", "wait for mail of agents"),
    ("interrupt", "[AGENT]", "interrupt its turn; its process stays"),
    ("stop", "[AGENT]", "end its run; the agent stays"),
    ("run", "[--name N] [--stay] PROMPT", "start another agent"),
    ("fork", "[--at #ID] [--name N] [PROMPT]", "fork this agent, and go there"),
    ("kill", "[AGENT] [--cascade] [--remark T]", "end an agent for good; asks first"),
    ("rename", "NAME", "give this agent another name"),
    ("adopt", "[ID] [--name N]", "continue a talk of Claude Code or codex"),
    ("summon", "[SEAT…]", "fill the seats that were never filled"),
    ("wake", "[AGENT or SEAT…]", "wake a sleeping agent"),
    ("clear", "", "start its history again; all of it stays in the log"),
    ("mark", "[LABEL]", "mark this place of its history"),
    ("rewind", "[LABEL or #ID]", "go back to a mark or a message"),
    ("history", "", "the whole conversation in your pager"),
    ("copy", "[code or all]", "copy its last answer, its code, or all"),
    ("find", "WORDS", "search this conversation"),
    ("pager", "", "the conversation in your pager"),
    ("agents", "[WORDS]", "find an agent"),
    ("tree", "", "agents as a tree"),
    ("next", "", "go to the next that needs you"),
    ("go", "AGENT", "go to an agent"),
    ("pin", "[1-9]", "give this agent a number"),
    ("why", "", "how we know what it does"),
    ("cost", "", "what was spent"),
    ("budget", "USD or none", "what this agent may spend"),
    ("diff", "", "what this agent has changed"),
    ("log", "[#ID]", "its events, or one of them"),
    ("quest", "new, list, show, pause, resume, retry, ward, budget, abandon …", "quests, as on the command line"),
    ("home", "", "who needs you"),
    ("mail", "", "your mail"),
    ("seats", "", "the seats"),
    ("help", "[WORDS]", "all keys and commands"),
    ("attach", "[PATH]", "add a file to your message, or make one of a paste that is too long"),
    ("set", "KEY on|off", "bell, motion, mouse, follow_fork, until you leave"),
    ("mouse", "", "turn the mouse on or off"),
    ("exit", "", "leave; agents go on"),
];

pub fn is_name(word: &str) -> bool {
    NAMES.iter().any(|(name, ..)| *name == word)
}

/// `There is no /frok. /fork? Tab takes it.`
pub fn unknown(name: &str) -> String {
    match nearest(name, NAMES.iter().map(|(name, ..)| *name)) {
        Some(near) => format!("There is no /{name}. /{near}? Tab takes it."),
        None => format!("There is no /{name}. /help lists them."),
    }
}

/// The known word that is most like the one that was written.
pub fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let like = |word: &str| strsim::jaro_winkler(&written.to_lowercase(), &word.to_lowercase());
    known
        .map(|word| (like(word), word))
        .filter(|(likeness, _)| *likeness >= LIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

/// What a command will do, said before Enter.
pub fn warning(text: &str) -> Option<&'static str> {
    let name = text.strip_prefix('/')?.split_whitespace().next()?;
    Some(match name {
        "clear" => "Its history starts again from nothing. All of it stays in the log.",
        "rewind" => "It forgets what came after. All of it stays in the log.",
        "wait" => "Waits up to 25 s for mail to you. Agents go on.",
        "kill" => "Asks first, and shows who ends.",
        "stop" => "Ends its run and its processes. The agent stays.",
        _ => return None,
    })
}
