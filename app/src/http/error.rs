//! Errors of the API: always JSON, always with a code for programs and a hint for people.

use crate::engine::SubmitError;
use crate::store::StoreError;
use crate::strict;
use axum::Json;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hatchery_core::Refusal;
use hatchery_core::refusal::RefusalKind;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: String,
    pub hint: String,
}

/// The body of every answer that is not a success.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ErrorBody {
    pub error: ErrorDetail,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ErrorDetail {
    /// A word that programs can rely on. It never changes.
    pub code: String,
    /// What happened, to which id.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

impl ApiError {
    pub fn new(status: StatusCode, code: &'static str, message: impl ToString, hint: impl ToString) -> Self {
        Self { status, code, message: message.to_string(), hint: hint.to_string() }
    }

    pub fn bad(code: &'static str, message: impl ToString, hint: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message, hint)
    }

    pub fn body(&self) -> ErrorBody {
        ErrorBody {
            error: ErrorDetail { code: self.code.into(), message: self.message.clone(), hint: self.hint.clone() },
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        // For `dialect.rs`, which may write the error in another form.
        response.extensions_mut().insert(self.clone());
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            StatusCode::UNAUTHORIZED => {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal.kind() {
            RefusalKind::Missing => StatusCode::NOT_FOUND,
            RefusalKind::Untimely => StatusCode::CONFLICT,
            RefusalKind::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self::new(status, refusal.code(), &refusal, refusal.hint())
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Refused(refusal) => refusal.into(),
            SubmitError::Store(error) => Self::from(error.as_ref()),
            SubmitError::Failed => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "command_failed",
                error,
                "this is a bug in Hatchery: .hatchery/daemon.log has the cause; the daemon keeps running",
            ),
            SubmitError::Stopped => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "stopping",
                error,
                "start the daemon again, then repeat this",
            ),
        }
    }
}

/// A failing store is never the caller's fault, so the status is 503 or 507.
impl From<&StoreError> for ApiError {
    fn from(error: &StoreError) -> Self {
        let (status, code, hint) = match error {
            StoreError::Full(_) => (
                StatusCode::INSUFFICIENT_STORAGE,
                "store_full",
                "nothing was recorded; free some space and repeat this",
            ),
            StoreError::Gone(_) => (
                StatusCode::INSUFFICIENT_STORAGE,
                "store_gone",
                "nothing was recorded; stop the daemon with `hatchery down`, put the files back, and start it again",
            ),
            StoreError::ReadOnly(_) => (
                StatusCode::INSUFFICIENT_STORAGE,
                "store_read_only",
                "nothing was recorded; make the store writable and repeat this",
            ),
            StoreError::Unavailable(_) | StoreError::Conflict => (
                StatusCode::SERVICE_UNAVAILABLE,
                "store_unavailable",
                "nothing was recorded; repeat this when the store is back",
            ),
            StoreError::Untrusted(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "store_untrusted",
                "nothing was recorded; see to the certificate of the database's server and repeat this",
            ),
            StoreError::Unknown(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "outcome_unknown",
                "read the events to see whether it was recorded before you repeat it",
            ),
            StoreError::NewerSchema { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, "newer_schema", "install the newer Hatchery")
            }
            StoreError::Damaged(_) | StoreError::Broken(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "store_broken",
                "run `hatchery fsck` and look into .hatchery/daemon.log",
            ),
        };
        Self::new(status, code, error, hint)
    }
}

/// Query parameters. An error is JSON.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Query::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(query)) => Ok(Self(query)),
            Err(error) => {
                let error: QueryRejection = error;
                Err(ApiError::bad("bad_query", error.body_text(), "/api/openapi.json lists the parameters"))
            }
        }
    }
}

/// Parts of the path. An error is JSON.
#[derive(Debug)]
pub struct PathParts<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParts<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(path)) => Ok(Self(path)),
            Err(error) => {
                let error: PathRejection = error;
                Err(ApiError::bad("bad_id", error.body_text(), "an id is 22 characters of A-Z, a-z, 0-9, - and _"))
            }
        }
    }
}

/// A JSON body. An error is JSON. The content type is required, because a form on a foreign page cannot set it.
#[derive(Debug)]
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            let message = format!("the body is `{essence}`, not JSON");
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "not_json",
                message,
                "send Content-Type: application/json",
            ));
        }
        let bytes = bytes::Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| unread(&error, "send less; max_body_bytes in hatchery.toml is the limit"))?;
        match strict::read_json(&bytes) {
            Ok(body) => Ok(Self(body)),
            Err(why) => Err(ApiError::bad("bad_json", why, "/api/openapi.json shows the shape of the body")),
        }
    }
}

/// A JSON body that may be missing, for clients that send no body if they have nothing to say. Unknown fields are ignored.
#[derive(Debug)]
pub struct Loose<T>(pub T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for Loose<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        if !chunked && length.is_none_or(|length| length == "0") {
            return Ok(Self(T::default()));
        }
        JsonBody::from_request(request, state).await.map(|JsonBody(body)| Self(body))
    }
}

/// A body of text with at most `LIMIT` bytes. An error is JSON.
#[derive(Debug)]
pub struct Text<const LIMIT: usize>(pub String);

impl<const LIMIT: usize, S: Send + Sync> FromRequest<S> for Text<LIMIT> {
    type Rejection = ApiError;

    async fn from_request(mut request: Request, state: &S) -> Result<Self, ApiError> {
        let less = format!("send at most {LIMIT} bytes");
        // A body that is announced as too long need not arrive.
        let length =
            request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: usize| length > LIMIT) {
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "the body is too long", less));
        }
        DefaultBodyLimit::max(LIMIT).apply(&mut request);
        let bytes = bytes::Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| unread(&error, &less))?;
        match String::from_utf8(bytes.into()) {
            Ok(text) => Ok(Self(text)),
            Err(error) => Err(ApiError::bad("not_text", error.utf8_error(), "send UTF-8")),
        }
    }
}

fn unread(error: &BytesRejection, less: &str) -> ApiError {
    let (code, hint) = match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ("body_too_large", less),
        _ => ("bad_body", "send the body whole"),
    };
    ApiError::new(error.status(), code, error.body_text(), hint)
}
