//! The page that `build.rs` has built from `web/`, embedded in the program. Each of its views has an address, and all of them answer with
//! the same document.

use super::guard;
use super::{ApiError, not_found};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "$OUT_DIR/page"]
struct Built;

/// The document of all views.
const DOCUMENT: &str = "index.html";
/// The file that says why there is no page, if there is none.
const MISSING: &str = "missing.txt";
/// The files that have a fingerprint in their name.
const FINGERPRINTED: &str = "assets/";
/// The first parts of the addresses of views.
const VIEWS: [&str; 8] = ["quests", "agents", "seats", "build", "mail", "log", "cost", "keys"];
/// Only the page's own scripts and styles, nothing from elsewhere, no requests to other hosts, not in a frame. And no text of an agent can
/// become markup, because no markup may be created from a string.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
    connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";
const FOREVER: &str = "private, max-age=31536000, immutable";

/// The document itself.
pub async fn document() -> Response {
    let body = match Built::get(DOCUMENT) {
        Some(file) => Html(file.data).into_response(),
        None => Html(fallback_document()).into_response(),
    };
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, body).into_response()
}

/// Answers a path that is not a route of the API: with a file of the page, with the document, or with an error.
pub async fn elsewhere(request: Request) -> Result<Response, ApiError> {
    let path = request.uri().path().trim_start_matches('/');
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    match Built::get(path).filter(|_| reads && ![DOCUMENT, MISSING].contains(&path)) {
        Some(file) => {
            let kind = HeaderValue::from_static(kind(path));
            let mut response = ([(header::CONTENT_TYPE, kind)], file.data).into_response();
            if path.starts_with(FINGERPRINTED) {
                response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(FOREVER));
            }
            Ok(response)
        }
        None if reads && is_view(path) => Ok(document().await),
        None if reads && !path.starts_with("api/") && is_for_browser(request.headers()) => Ok(no_such_page()),
        None => Err(not_found(request).await),
    }
}

/// Whether a browser sent the request and will show the answer to a person.
pub fn is_for_browser(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accepts| accepts.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("text/html"))
}

/// Whether the path is the address of a view.
pub fn is_view(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    VIEWS.contains(&first)
}

/// The page for a person without the cookie, instead of JSON.
pub fn locked(error: &ApiError) -> Response {
    let words = format!(
        "<h1>This page needs the project’s token</h1><p>Run <code>hatchery open</code> in the folder of the project, or open the link that <code>hatchery status</code> prints: it \
         carries the token, which then becomes a cookie.</p><p>{}</p>",
        guard::cut(&error.message)
    );
    plain(StatusCode::UNAUTHORIZED, &words)
}

/// The page for an address that does not exist. It does not repeat the address, because any website can have made it.
fn no_such_page() -> Response {
    plain(
        StatusCode::NOT_FOUND,
        "<h1>There is no such page</h1><p><a href=\"/\">Hatchery’s first page</a> leads to all others.</p>",
    )
}

fn plain(status: StatusCode, words: &str) -> Response {
    let body = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>Hatchery</title>{words}"
    );
    let policy = [(header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'")];
    (status, policy, Html(body)).into_response()
}

/// The media types of the page's files.
fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("webmanifest" | "json" | "map") => "application/json",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

fn fallback_document() -> String {
    let why = Built::get(MISSING).map_or_else(String::new, |file| String::from_utf8_lossy(&file.data).into_owned());
    without_page(&why)
}

/// The page of a program that was built without its page: what works nevertheless, how to get the page, and what the build said.
fn without_page(why: &str) -> String {
    let why: String = why.chars().flat_map(escaped).collect();
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>Hatchery</title>\
         <h1>This Hatchery was built without its page</h1><p>Everything else works: see <code>hatchery --help</code> and \
         <a href=\"/api/openapi.json\">the API</a>.</p><p>For the page, install Node.js 20.19 or newer and build again: \
         <code>touch app/build.rs &amp;&amp; cargo build --release</code></p><p>When it was built:</p><pre>{why}</pre>"
    )
}

fn escaped(letter: char) -> Vec<char> {
    match letter {
        '<' => "&lt;".chars().collect(),
        '>' => "&gt;".chars().collect(),
        '&' => "&amp;".chars().collect(),
        other => vec![other],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_known_by_the_first_part_of_its_address() {
        for path in ["/quests", "/quests/abc/step", "log", "/agents/x"] {
            assert!(is_view(path), "{path}");
        }
        for path in ["/", "/api/agents", "/questsx", "/assets/x.js", "/etc/passwd"] {
            assert!(!is_view(path), "{path}");
        }
    }

    #[test]
    fn without_its_page_the_program_says_how_to_get_it() {
        let shown = without_page("npm: <not found>");
        assert!(shown.contains("This Hatchery was built without its page"), "{shown}");
        assert!(shown.contains("install Node.js 20.19 or newer and build again"), "{shown}");
        assert!(shown.contains("<code>touch app/build.rs &amp;&amp; cargo build --release</code>"), "{shown}");
        assert!(shown.contains("<pre>npm: &lt;not found&gt;</pre>"), "{shown}");
    }

    #[test]
    fn what_a_build_said_is_text() {
        let shown: String = "<b>&".chars().flat_map(escaped).collect();
        assert_eq!(shown, "&lt;b&gt;&amp;");
    }
}
