//! The log over HTTP, page by page: forwards or backwards, all events or only filtered ones; how many there are, and where a time is.

use super::Api;
use super::error::{ApiError, Query};
use super::events::{EventObject, cursor};
use crate::log_filter::LogFilter;
use crate::store::{Store, StoreError};
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use hatchery_core::event::{is_event_type, write_wire};
use hatchery_core::{EventId, Timestamp, World};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Arc;

const MAX_LIMIT: u32 = 1_000;
const DEFAULT_LIMIT: u32 = 100;
/// The most events that are searched for one page, so that an answer takes a fraction of a second even if nothing is found.
const PAGE_SCAN: u64 = 20_000;
/// The most events that are searched for one count.
const COUNT_SCAN: u64 = 200_000;
/// How many rows are read at once when the log is read backwards.
const WINDOW: u64 = 512;
/// A page ends when it has this many bytes. One event may be larger; then it is alone on its page.
const PAGE_BYTES: usize = 256 << 10;
const DEFAULT_PARTS: u32 = 100;
const MAX_PARTS: u64 = 200;
/// The most values of one filter.
const MAX_VALUES: usize = 50;
/// The longest search words.
const MAX_WORDS_BYTES: usize = 256;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Only events after this id; 0 or -1 is the beginning. Must not be beyond the end of the log.
    #[param(minimum = -1)]
    after: Option<i64>,
    /// The last events before this id, instead of the first ones after `after`. The log is read backwards; the answer is in order.
    #[param(minimum = 1)]
    before: Option<u64>,
    /// At most this many, from 1 to 1000; 100 if not given. Long events make the page shorter.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Only events about these agents, and their mail: ids, beginnings of ids, or names, separated by commas.
    agent: Option<String>,
    /// Only events of these quests and of the agents that work for them: ids, or beginnings of ids, separated by commas.
    quest: Option<String>,
    /// Only events of this step. Needs `quest`.
    step: Option<String>,
    /// Only events of these types, separated by commas.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    kind: Option<String>,
    /// No events of these types, separated by commas.
    without: Option<String>,
    /// Only events that have these words in them, in small or capital letters. At most 256 bytes.
    #[param(max_length = 256)]
    words: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CountQuery {
    /// Count events after this id; 0 or -1 means from the beginning.
    #[param(minimum = -1)]
    after: Option<i64>,
    /// Only events about these agents, and their mail: ids, beginnings of ids, or names, separated by commas.
    agent: Option<String>,
    /// Only events of these quests and of the agents that work for them: ids, or beginnings of ids, separated by commas.
    quest: Option<String>,
    /// Only events of this step. Needs `quest`.
    step: Option<String>,
    /// Only events of these types, separated by commas.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    kind: Option<String>,
    /// No events of these types, separated by commas.
    without: Option<String>,
    /// Only events that have these words in them, in small or capital letters. At most 256 bytes.
    #[param(max_length = 256)]
    words: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TimeQuery {
    /// Milliseconds since 1970.
    ts: Option<i64>,
}

/// Some events of the log, in order.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct EventPage {
    events: Vec<EventObject>,
    /// The last event of the log.
    head: EventId,
    /// The position after which events were searched. To continue backwards, ask with `before` one above it.
    from: EventId,
    /// The last event that was searched. To continue forwards, ask with this as `after`.
    upto: EventId,
    /// Whether there are more events in the direction of the request.
    more: bool,
}

/// How many events match.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EventCount {
    /// The number of matching events up to `upto`.
    pub count: u64,
    /// The last event that was searched.
    pub upto: EventId,
    /// The last event of the log. If it is after `upto`, ask again with `after`, and add the counts.
    pub head: EventId,
}

/// The position of a time in the log.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EventAt {
    /// The last event before that time; 0 if there is none.
    pub after: EventId,
    pub head: EventId,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MapQuery {
    /// Into how many parts the log is divided, from 1 to 200; 100 if not given.
    #[param(minimum = 1, maximum = 200)]
    parts: Option<u32>,
}

/// The log in equal parts, to show when many events happened and when few.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct EventMap {
    /// The first event of each part and its time, in order.
    parts: Vec<EventPart>,
    head: EventId,
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct EventPart {
    first: EventId,
    ts: Timestamp,
}

/// The events that were found between two positions.
pub(super) struct FoundEvents {
    pub events: Vec<(EventId, String)>,
    pub from: EventId,
    pub upto: EventId,
}

/// A page of events after or before a position, with filters. At most 20,000 events are searched for one answer.
#[utoipa::path(get, path = "/api/events.json", operation_id = "list_events", tag = "events", params(PageQuery),
    responses((status = 200, description = "Some events", body = EventPage)))]
pub async fn page(State(api): State<Api>, query: Query<PageQuery>) -> Result<Response, ApiError> {
    let PageQuery { after, before, limit, agent, quest, step, kind, without, words } = query.0;
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::bad(
            "bad_limit",
            format!("a limit of {limit} is out of range"),
            format!("choose from 1 to {MAX_LIMIT}"),
        ));
    }
    if after.is_some() && before.is_some() {
        return Err(ApiError::bad("two_cursors", "a page is after a place or before one", "give one of the two"));
    }
    let filter = filter(&api, &FilterText { agent, quest, step, kind, without, words })?;
    let after = cursor(&api, after.unwrap_or(0)).await?;
    let (world, head, limit) = (api.handle.view(), api.handle.head(), limit as usize);
    let found = aside(&api, move |store| match before {
        Some(before) => backwards(store, &world, &filter, EventId(before), head, limit),
        None => forwards(store, &world, &filter, after, limit),
    })
    .await?;
    let head = found.upto.max(api.handle.head());
    let more = match before {
        Some(_) => found.from > EventId::START,
        None => found.upto < head,
    };
    let mut body = b"{\"events\":[".to_vec();
    for (at, (id, event)) in found.events.iter().enumerate() {
        body.extend_from_slice(if at == 0 { b"" } else { b"," });
        write_wire(&mut body, *id, event);
    }
    let (from, upto) = (found.from, found.upto);
    body.extend_from_slice(format!("],\"head\":{head},\"from\":{from},\"upto\":{upto},\"more\":{more}}}").as_bytes());
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Count the events that match. At most 200,000 events are searched for one answer.
#[utoipa::path(get, path = "/api/events/count", operation_id = "count_events", tag = "events", params(CountQuery),
    responses((status = 200, description = "As many as were found up to `upto`", body = EventCount)))]
pub async fn count(State(api): State<Api>, query: Query<CountQuery>) -> Result<Json<EventCount>, ApiError> {
    let CountQuery { after, agent, quest, step, kind, without, words } = query.0;
    let filter = filter(&api, &FilterText { agent, quest, step, kind, without, words })?;
    let after = cursor(&api, after.unwrap_or(0)).await?;
    let world = api.handle.view();
    let head = world.head();
    let (count, upto) = aside(&api, move |store| {
        // Ids have no gaps, so all events can be counted without reading them.
        if filter.is_empty() {
            return Ok((head.0.saturating_sub(after.0), head.max(after)));
        }
        let (mut count, mut upto) = (0, after);
        store.read_after(after, usize::try_from(COUNT_SCAN).unwrap_or(usize::MAX), &mut |id, body| {
            upto = id;
            count += u64::from(filter.matches(&world, body));
            ControlFlow::Continue(())
        })?;
        Ok((count, upto))
    })
    .await?;
    Ok(Json(EventCount { count, upto, head: head.max(upto) }))
}

/// Find the position of a time in the log. If the clock has run backwards, there may be several positions, and one of them is returned.
#[utoipa::path(get, path = "/api/events/at", operation_id = "find_moment", tag = "events", params(TimeQuery),
    responses((status = 200, description = "The place of that moment", body = EventAt)))]
pub async fn at(State(api): State<Api>, query: Query<TimeQuery>) -> Result<Json<EventAt>, ApiError> {
    let moment = Timestamp(query.0.ts.unwrap_or(i64::MAX));
    let head = api.handle.head();
    let after = aside(&api, move |store| {
        let (mut low, mut high) = (0, head.0);
        while low < high {
            let middle = low + (high - low) / 2;
            // The event right after the middle.
            match time_of(store, EventId(middle))? {
                Some(ts) if ts < moment => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(EventId(low))
    })
    .await?;
    Ok(Json(EventAt { after, head }))
}

/// Show when each part of the log began. Reads one event for each part.
#[utoipa::path(get, path = "/api/events/map", operation_id = "map_events", tag = "events", params(MapQuery),
    responses((status = 200, description = "The parts of the log", body = EventMap)))]
pub async fn map(State(api): State<Api>, query: Query<MapQuery>) -> Result<Json<EventMap>, ApiError> {
    let parts = u64::from(query.0.parts.unwrap_or(DEFAULT_PARTS));
    if !(1..=MAX_PARTS).contains(&parts) {
        let message = format!("{parts} parts are out of range");
        return Err(ApiError::bad("bad_parts", message, format!("choose from 1 to {MAX_PARTS}")));
    }
    let head = api.handle.head();
    let parts = aside(&api, move |store| {
        let mut found: Vec<EventPart> = Vec::new();
        for part in 0..parts.min(head.0) {
            let after = EventId(head.0 * part / parts.min(head.0));
            if let Some(ts) = time_of(store, after)? {
                found.push(EventPart { first: after.next(), ts });
            }
        }
        Ok(found)
    })
    .await?;
    Ok(Json(EventMap { parts, head }))
}

/// The time of the event after a position.
fn time_of(store: &dyn Store, after: EventId) -> Result<Option<Timestamp>, StoreError> {
    #[derive(Deserialize)]
    struct EventTime {
        ts: Timestamp,
    }
    let mut found = None;
    store.read_after(after, 1, &mut |_, body| {
        found = serde_json::from_str::<EventTime>(body).ok().map(|envelope| envelope.ts);
        ControlFlow::Break(())
    })?;
    Ok(found)
}

fn forwards(
    store: &dyn Store,
    world: &World,
    filter: &LogFilter,
    after: EventId,
    limit: usize,
) -> Result<FoundEvents, StoreError> {
    let (mut events, mut upto, mut bytes) = (Vec::new(), after, 0);
    store.read_after(after, usize::try_from(PAGE_SCAN).unwrap_or(usize::MAX), &mut |id, body| {
        if filter.is_empty() || filter.matches(world, body) {
            bytes += body.len();
            // An event that would make the page too large is for the next page.
            if bytes > PAGE_BYTES && !events.is_empty() {
                return ControlFlow::Break(());
            }
            events.push((id, body.to_owned()));
        }
        upto = id;
        if events.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(FoundEvents { events, from: after, upto })
}

/// The last matching events before a position. At most 20,000 events are searched.
pub(super) async fn latest(
    api: &Api,
    filter: LogFilter,
    before: Option<u64>,
    limit: usize,
) -> Result<FoundEvents, ApiError> {
    let world = api.handle.view();
    let head = world.head();
    let before = before.map_or_else(|| head.next(), EventId);
    aside(api, move |store| backwards(store, &world, &filter, before, head, limit)).await
}

/// Reads window by window, each forwards, because the store reads only forwards.
fn backwards(
    store: &dyn Store,
    world: &World,
    filter: &LogFilter,
    before: EventId,
    head: EventId,
    limit: usize,
) -> Result<FoundEvents, StoreError> {
    let last = before.before().min(head);
    let (mut end, mut events, mut bytes) = (last, Vec::new(), 0);
    while end > EventId::START && last.0 - end.0 < PAGE_SCAN {
        let start = EventId(end.0.saturating_sub(WINDOW));
        let mut window = Vec::new();
        store.read_after(start, usize::try_from(end.0 - start.0).unwrap_or(usize::MAX), &mut |id, body| {
            if id <= end && (filter.is_empty() || filter.matches(world, body)) {
                window.push((id, body.to_owned()));
            }
            ControlFlow::Continue(())
        })?;
        for (id, body) in window.into_iter().rev() {
            bytes += body.len();
            if bytes > PAGE_BYTES && !events.is_empty() {
                events.reverse();
                return Ok(FoundEvents { events, from: id, upto: last });
            }
            events.push((id, body));
            if events.len() >= limit {
                events.reverse();
                return Ok(FoundEvents { events, from: id.before(), upto: last });
            }
        }
        end = start;
    }
    events.reverse();
    Ok(FoundEvents { events, from: end, upto: last })
}

/// The filters of a request, as text.
#[derive(Debug, Default)]
pub(super) struct FilterText {
    pub agent: Option<String>,
    pub quest: Option<String>,
    pub step: Option<String>,
    pub kind: Option<String>,
    pub without: Option<String>,
    pub words: Option<String>,
}

/// Reads the filters of a request. A value that no event can match is refused, because a client would wait for its events forever.
pub(super) fn filter(api: &Api, text: &FilterText) -> Result<LogFilter, ApiError> {
    let FilterText { agent, quest, step, kind, without, words } = text;
    if words.as_ref().is_some_and(|words| words.len() > MAX_WORDS_BYTES) {
        let hint = format!("use at most {MAX_WORDS_BYTES} bytes");
        return Err(ApiError::bad("words_too_long", "the words to look for are too long", hint));
    }
    if step.is_some() && quest.is_none() {
        return Err(ApiError::bad("step_without_quest", "a step belongs to a quest", "give `quest` as well"));
    }
    let bad =
        |name: &str, error: ApiError| ApiError::bad("bad_filter", format!("{name}: {}", error.message), error.hint);
    let agent_of = |agent: &str| super::agents::find(api, agent).map_err(|error| bad("agent", error));
    let quest_of = |quest: &str| super::quests::find(api, quest).map_err(|error| bad("quest", error));
    let type_of = |kind: &str| match is_event_type(kind) {
        true => Ok(kind.to_owned()),
        false => {
            let shown: String = kind.chars().take(64).collect();
            let message = format!("type: there is no event type `{shown}`");
            Err(ApiError::bad("bad_filter", message, "/api/openapi.json lists the types"))
        }
    };
    Ok(LogFilter {
        agents: values("agent", agent.as_deref())?.map(agent_of).collect::<Result<_, _>>()?,
        quests: values("quest", quest.as_deref())?.map(quest_of).collect::<Result<_, _>>()?,
        step: step.as_ref().map(|step| step.parse()).transpose()?,
        types: values("type", kind.as_deref())?.map(type_of).collect::<Result<_, _>>()?,
        without: values("without", without.as_deref())?.map(type_of).collect::<Result<_, _>>()?,
        words: words.as_deref().and_then(LogFilter::words),
    })
}

/// The values of a filter. An empty filter is not the same as no filter, so it is refused.
fn values<'a>(name: &str, text: Option<&'a str>) -> Result<impl Iterator<Item = &'a str>, ApiError> {
    let values: Vec<&str> = text.into_iter().flat_map(|text| text.split(',')).collect();
    if values.len() > MAX_VALUES {
        let message = format!("{name}: {} values are too many", values.len());
        return Err(ApiError::bad("bad_filter", message, format!("give at most {MAX_VALUES}")));
    }
    match values.iter().any(|value| value.is_empty()) {
        true => Err(ApiError::bad("bad_filter", format!("{name}: a value is empty"), "leave the parameter out")),
        false => Ok(values.into_iter()),
    }
}

/// Reads the store on a thread that may block.
async fn aside<T: Send + 'static>(
    api: &Api,
    read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, ApiError> {
    let store = Arc::clone(api.handle.store());
    let read = tokio::task::spawn_blocking(move || read(store.as_ref())).await;
    read.unwrap_or_else(|error| Err(StoreError::Broken(error.to_string()))).map_err(|error| ApiError::from(&error))
}
