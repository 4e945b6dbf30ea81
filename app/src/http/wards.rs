//! The output of a quest's wards over HTTP: limited parts of a file that may still grow.

use super::Api;
use super::error::{ApiError, PathParts, Query};
use super::quests::find;
use crate::no_links;
use crate::ward::Ward;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

/// How many bytes an answer has by default.
const USUAL_BYTES: u64 = 64 << 10;
/// The most bytes of an answer, because it is held in memory.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OutputQuery {
    /// The first byte; a negative number counts from the end. 0 if not given.
    from: Option<i64>,
    /// At most this many bytes; 65,536 if not given.
    #[param(minimum = 1, maximum = 1_048_576)]
    limit: Option<u64>,
}

/// A part of the output of a ward.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WardOutput {
    /// The first byte of this part.
    pub from: u64,
    /// Where the next part begins.
    pub upto: u64,
    /// The length of the output now. A running ward appends to it.
    pub size: u64,
    /// Bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// Show a part of the output of a ward. Of a long output only the first and the last 4 MiB are kept.
#[utoipa::path(get, path = "/api/quests/{quest}/steps/{step}/wards/{number}/output", operation_id = "ward_output", tag = "quests", params(("quest" = String, Path, description = "An id, or the beginning of one"), ("step" = String, Path, description = "The id of a step"), ("number" = u32, Path, description = "The number of the ward among those of the step"), OutputQuery),
    responses((status = 200, description = "This part", body = WardOutput)))]
pub async fn output(
    State(api): State<Api>,
    of: PathParts<(String, String, u32)>,
    query: Query<OutputQuery>,
) -> Result<Json<WardOutput>, ApiError> {
    let (reference, step, number) = of.0;
    let quest = find(&api, &reference)?;
    let limit = query.0.limit.unwrap_or(USUAL_BYTES);
    if !(1..=MAX_BYTES).contains(&limit) {
        let hint = format!("choose from 1 to {MAX_BYTES}");
        return Err(ApiError::bad("bad_limit", format!("a limit of {limit} bytes is out of range"), hint));
    }
    let missing = |why: String| {
        let hint = "the events `ward_begun` and `ward_ended` of the quest have the numbers";
        let message = format!("there is no output of ward {number} of step `{step}`: {why}");
        ApiError::new(StatusCode::NOT_FOUND, "no_ward_output", message, hint)
    };
    let ward = Ward::of(PathBuf::new(), &api.defaults.project, &quest.to_string(), &step, number)
        .map_err(|error| missing(error.to_string()))?;
    let (file, from) = (ward.output_file(), query.0.from.unwrap_or_default());
    let read = tokio::task::spawn_blocking(move || part(&file, from, limit)).await;
    let part = read.map_err(io::Error::other).flatten().map_err(|error| missing(error.to_string()))?;
    Ok(Json(part))
}

fn part(path: &std::path::Path, from: i64, limit: u64) -> io::Result<WardOutput> {
    let mut file = no_links::open(path)?;
    let size = file.metadata()?.len();
    let from = match u64::try_from(from) {
        Ok(from) => from.min(size),
        Err(_) => size.saturating_sub(from.unsigned_abs()),
    };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    // A character of several bytes is not cut, unless the part has nothing else.
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
        && error.valid_up_to() > 0
    {
        bytes.truncate(error.valid_up_to());
    }
    let upto = from + bytes.len() as u64;
    Ok(WardOutput { from, upto, size: size.max(upto), text: String::from_utf8_lossy(&bytes).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_join_to_the_whole_and_cut_no_letter() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("output");
        std::fs::write(&file, "one ü two").unwrap();
        let first = part(&file, 0, 5).unwrap();
        assert_eq!((first.text.as_str(), first.upto, first.size), ("one ", 4, 10));
        let rest = part(&file, 4, 100).unwrap();
        assert_eq!((rest.text.as_str(), rest.upto), ("ü two", 10));
        assert_eq!(part(&file, -3, 100).unwrap().text, "two");
        assert_eq!(part(&file, 99, 100).unwrap().text, "");
    }
}
