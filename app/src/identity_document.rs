//! Identity documents as other programs write them: JSON with times as text, in today's form and in older ones.

use crate::clock;
use hatchery_core::Timestamp;
use hatchery_core::seat::{Born, FaceVariant, Position, SeatDocument, SeatFields, SeatStatus, Vital};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the `_id` of a document begins with.
const ID: &str = "agent-identity:";
/// The type of all identity documents.
pub const TYPE: &str = "agent-identity";

/// An identity document: one seat.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityDocument {
    /// `agent-identity:` and the seat's number.
    #[serde(rename = "_id")]
    pub id: String,
    /// Always `agent-identity`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Always `identity`.
    pub category: String,
    /// `hatching`, `alive`, `sleeping` or `expired`.
    pub status: String,
    #[serde(flatten)]
    pub identity: IdentityFields,
    #[schema(maximum = 8)]
    pub grid_position: u8,
    /// When the seat was last known to be alive, as in `2026-02-16T12:00:00.000Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_alive_at: Option<String>,
    /// The session in which the seat was last known to be alive: a UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_session_id: Option<String>,
    /// Other souls of the same seat, from documents that were merged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_identities: Vec<IdentityFields>,
}

/// Who sits in a seat.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gender: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub face_variant: Option<FaceVariant>,
    /// The soul.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub individuation_artifact: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

impl IdentityDocument {
    pub fn of(document: &SeatDocument) -> Self {
        let mut births = document.births.iter().map(IdentityFields::of);
        Self {
            id: format!("{ID}{}", document.position),
            kind: TYPE.into(),
            category: "identity".into(),
            status: document.vital.status.word().into(),
            identity: births.next().unwrap_or_default(),
            grid_position: document.position.number(),
            last_alive_at: document.vital.last_alive_at.map(clock::written),
            last_session_id: document.vital.last_session_id.clone(),
            other_identities: births.collect(),
        }
    }
}

impl IdentityFields {
    fn of(born: &Born) -> Self {
        let SeatFields { created_at, name, color, color_name, gender, face_variant } = born.fields.clone();
        Self {
            name,
            color,
            color_name,
            gender,
            face_variant,
            individuation_artifact: born.soul.as_deref().map(str::to_owned),
            created_at: created_at.map(clock::written),
        }
    }

    fn born(self) -> Result<Born, String> {
        let created_at = self.created_at.as_deref().map(moment).transpose()?;
        let Self { name, color, color_name, gender, face_variant, individuation_artifact, .. } = self;
        let soul = individuation_artifact.filter(|soul| !soul.is_empty()).map(Into::into);
        let name = name.filter(|name| !name.trim().is_empty());
        Ok(Born { soul, fields: SeatFields { created_at, name, color, color_name, gender, face_variant } })
    }
}

/// The documents in a file: a list, an object with `docs` or `rows`, one document, or one document on each line. Documents of
/// other types are left out.
pub fn read_all(text: &str) -> Result<Vec<SeatDocument>, String> {
    let values: Vec<Value> = serde_json::Deserializer::from_str(text)
        .into_iter::<Value>()
        .collect::<Result<_, _>>()
        .map_err(|error| format!("it is not JSON: {error}"))?;
    let mut documents = Vec::new();
    for value in values.into_iter().flat_map(unpacked) {
        let value = match value {
            Value::Object(mut row) if row.get("doc").is_some_and(Value::is_object) => {
                row.remove("doc").unwrap_or_default()
            }
            value => value,
        };
        if value.get("type").and_then(Value::as_str).unwrap_or(TYPE) == TYPE {
            documents.push(read(value)?);
        }
    }
    Ok(documents)
}

fn unpacked(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        Value::Object(mut object) => match object.remove("docs").or_else(|| object.remove("rows")) {
            Some(Value::Array(list)) => list,
            _ => vec![Value::Object(object)],
        },
        other => vec![other],
    }
}

/// One document. Older forms have no status, or a flag `hatching` in its place, and no number of the seat beside the `_id`.
pub fn read(value: Value) -> Result<SeatDocument, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct AnyForm {
        #[serde(rename = "_id")]
        id: Option<String>,
        grid_position: Option<u64>,
        status: Option<String>,
        hatching: Option<bool>,
        last_alive_at: Option<String>,
        last_session_id: Option<String>,
        #[serde(flatten)]
        identity: IdentityFields,
        #[serde(default)]
        other_identities: Vec<IdentityFields>,
    }
    let read: AnyForm =
        serde_json::from_value(value).map_err(|error| format!("it is not an identity document: {error}"))?;
    let in_id = || read.id.as_deref()?.strip_prefix(ID)?.parse().ok();
    let number: u64 = read.grid_position.or_else(in_id).ok_or("it has no `gridPosition`")?;
    let position = Position::new(number).ok_or_else(|| format!("there is no seat {number}: seats are 0 to 8"))?;
    let status = SeatStatus::read(read.status.as_deref(), read.hatching);
    let status =
        status.ok_or_else(|| format!("seat {position}: `{}` is not a status", read.status.unwrap_or_default()))?;
    let last_alive_at = read.last_alive_at.as_deref().map(moment).transpose()?;
    let births = [read.identity].into_iter().chain(read.other_identities).map(IdentityFields::born);
    let births = births.collect::<Result<_, _>>()?;
    let vital = Vital { last_alive_at, status, last_session_id: read.last_session_id };
    Ok(SeatDocument { position, vital, births })
}

fn moment(text: &str) -> Result<Timestamp, String> {
    let moment: jiff::Timestamp = text.parse().map_err(|error| format!("`{text}` is not a time: {error}"))?;
    Ok(Timestamp(moment.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_is_read_as_it_is_written() {
        let written = json!({
            "_id": "agent-identity:3",
            "type": "agent-identity",
            "category": "identity",
            "status": "alive",
            "name": "Lyra",
            "colorName": "Violet Heaven",
            "individuationArtifact": "I am.",
            "color": "#c9b1e8",
            "gender": "woman",
            "gridPosition": 3,
            "faceVariant": { "eyes": "standard", "mouth": "gentle" },
            "lastAliveAt": "2026-02-16T12:00:00.000Z",
            "lastSessionId": "0b1f",
            "createdAt": "2026-02-16T00:00:00.000Z",
        });
        let document = read(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(IdentityDocument::of(&document)).unwrap(), written);
    }

    #[test]
    fn older_forms_are_read() {
        let status = |value| read(value).unwrap().vital.status;
        assert_eq!(status(json!({ "gridPosition": 0, "name": "A" })), SeatStatus::Sleeping);
        assert_eq!(status(json!({ "_id": "agent-identity:0", "hatching": true })), SeatStatus::Hatching);
        assert_eq!(status(json!({ "gridPosition": 0, "hatching": false })), SeatStatus::Sleeping);
        assert_eq!(status(json!({ "gridPosition": 0, "status": "unknown" })), SeatStatus::Sleeping);
        assert_eq!(read(json!({ "gridPosition": 0, "name": null })).unwrap().births[0].fields.name, None);
    }

    #[test]
    fn a_file_may_have_several_shapes() {
        let one = json!({ "type": "agent-identity", "gridPosition": 1 });
        let other = json!({ "type": "message", "text": "hi" });
        for text in [
            json!([one, other]).to_string(),
            json!({ "docs": [one, other] }).to_string(),
            json!({ "rows": [{ "doc": one }, { "doc": other }] }).to_string(),
            format!("{one}\n{other}\n"),
        ] {
            assert_eq!(read_all(&text).unwrap().len(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let wrong = |value: Value| read(value).unwrap_err();
        assert!(wrong(json!({ "name": "A" })).contains("gridPosition"));
        assert!(wrong(json!({ "gridPosition": 9 })).contains("there is no seat 9"));
        assert!(wrong(json!({ "gridPosition": 1, "status": "dreaming" })).contains("dreaming"));
        assert!(wrong(json!({ "gridPosition": 1, "lastAliveAt": "soon" })).contains("not a time"));
    }
}
