//! What keys and commands lead to: switching, saying, forking, opening panels. Each changes the model and returns what is to be done
//! outside.

mod agents;
mod answers;
mod panels;
mod reading;
mod saying;
mod search;
mod switch;

pub use agents::{arrive, ask_kill, fork, forked, interrupt, kill, post_about};
pub use answers::{
    SENDING, answer_chosen, answer_effect, answer_oldest, choose, chosen_in_home, chosen_need, keep_own_words,
    number_on_question, open_step, quest_command, read_request, set_own_words_aside,
};
pub use panels::{
    LISTED_EVENTS, follow_sheet, log_path, open_quest, open_sheet, read_sheet, settle_step, sheet_due, toggle,
    toggle_tree, touch_sheet, uncover, wanted_changes, wanted_quests,
};
pub use reading::{
    FURTHER_DOWN, answer_before, choose_block, code_of, fold, fold_turn, last_answer, scroll, to_begin, to_end, whole,
};
pub use saying::{arrived, attached, failed, flush, give_back_to, lay_aside, remember, said, say_to, send, take_text};
pub use search::{begin_search, found_in_log, go_on, go_to, goto, next_match, prefix_shown_at, search, set_aside};
pub use switch::{
    approach, by_number, come_back, go, last_visited, load, load_earlier, neighbour, next_need, open_first, relative,
    resolve_wanted,
};
