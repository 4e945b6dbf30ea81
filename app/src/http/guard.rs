//! Checks every request. The daemon does whatever its API is told, so neither a foreign web page nor a rebound DNS name may use it: the
//! host must be this daemon's, the origin must be this daemon's, and the caller must know the token.

use super::ApiContext;
use super::error::ApiError;
use super::page;
use crate::blocking::blocking;
use crate::config::Auth;
use crate::run_folder::{self, RunFolder};
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Redirect, Response};
use hatchery_core::run::AttemptId;
use std::net::IpAddr;
use std::sync::Arc;
use subtle::ConstantTimeEq as _;

/// What the checks need.
#[derive(Clone, Debug)]
pub struct Guard {
    auth: Auth,
    token: String,
    cookie: String,
    allowed_hosts: Vec<String>,
    /// On loopback only loopback names count as this daemon's. Otherwise any IP address does, because a rebound name is not an address.
    loopback: bool,
}

impl Guard {
    pub fn new(auth: Auth, token: String, listen: std::net::SocketAddr, allowed_hosts: Vec<String>) -> Self {
        // Browsers share cookies between the ports of one host, and each project has its own daemon.
        let cookie = format!("hatchery_{}", listen.port());
        Self { auth, token, cookie, allowed_hosts, loopback: listen.ip().is_loopback() }
    }

    fn is_our_host(&self, host: &str) -> bool {
        let by_address = match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || !self.loopback,
            Err(_) => false,
        };
        by_address
            || host.eq_ignore_ascii_case("localhost")
            || self.allowed_hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host))
    }

    /// The authority of the request, if it is this daemon's. A request with two authorities is ambiguous, so it is refused.
    fn our_authority<'a>(&self, headers: &'a HeaderMap, uri: &'a Uri) -> Result<&'a str, ApiError> {
        let mut named = headers.get_all(header::HOST).into_iter().map(|host| host.to_str().unwrap_or_default());
        let authority = named.next().unwrap_or_default();
        let other = named.next().or_else(|| uri.authority().map(Authority::as_str).filter(|it| *it != authority));
        if let Some(other) = other {
            return Err(ApiError::bad(
                "two_hosts",
                format!("the request is for `{}` and for `{}`", cut(authority), cut(other)),
                "send one Host header, and a path instead of a whole address",
            ));
        }
        match bare_host(authority).is_some_and(|host| self.is_our_host(host)) {
            true => Ok(authority),
            false => Err(ApiError::new(
                StatusCode::MISDIRECTED_REQUEST,
                "wrong_host",
                format!("`{}` is not a name of this daemon", cut(authority)),
                "use the address that `hatchery status` shows, or add the name to allowed_hosts in hatchery.toml",
            )),
        }
    }

    fn knows(&self, offered: &str) -> bool {
        offered.as_bytes().ct_eq(self.token.as_bytes()).into()
    }

    /// `by_run` says that the request carries the token of a run and asks only for what this run may have.
    fn check(&self, headers: &HeaderMap, uri: &Uri, by_run: bool) -> Result<(), ApiError> {
        let authority = self.our_authority(headers, uri)?;
        let foreign = |page: &str| {
            ApiError::new(
                StatusCode::FORBIDDEN,
                "wrong_origin",
                format!("a page of `{}` may not send requests to this daemon", cut(page)),
                "open the link that `hatchery up` prints",
            )
        };
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            if origin.strip_prefix("http://") != Some(authority) {
                return Err(foreign(origin));
            }
        }
        // An image or a script on a foreign page is requested without an origin. For a browser, pages on all ports of this machine are of
        // the same site, so the cookie is sent along; but the browser also says where the request comes from.
        let site = headers.get("sec-fetch-site").map(|site| site.to_str().unwrap_or_default());
        match site {
            None | Some("same-origin" | "none") => {}
            Some(_) if uri.path() == "/" => {}
            Some(site) => return Err(foreign(site)),
        }
        match self.trusts(headers) || is_open(uri.path()) || by_run {
            true => Ok(()),
            false => Err(ApiError::new(
                StatusCode::UNAUTHORIZED,
                "no_token",
                "this needs the project's token",
                "send Authorization: Bearer with the content of .hatchery/token, or open the link that `hatchery up` prints",
            )),
        }
    }

    /// Whether a request may see everything.
    pub(super) fn trusts(&self, headers: &HeaderMap) -> bool {
        self.auth == Auth::None || self.has_token(headers)
    }

    /// Handles the printed link: the token becomes a cookie and disappears from the address line.
    fn opens(&self, request: &Request) -> Option<Response> {
        let is_link = request.method() == Method::GET && request.uri().path() == "/";
        let offered = link_token(request.uri().query()).filter(|_| is_link)?;
        self.our_authority(request.headers(), request.uri()).ok()?;
        let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie, self.token);
        self.knows(offered).then(|| ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response())
    }

    pub(super) fn has_token(&self, headers: &HeaderMap) -> bool {
        let bearer = bearer(headers);
        let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut cookie = cookies.flat_map(|value| value.split(';')).filter_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.cookie).then_some(value)
        });
        bearer.is_some_and(|token| self.knows(token)) || cookie.any(|token| self.knows(token))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The token of a run, if the request has one and asks only for what the tools of that run may do: an agent acts only for itself.
/// [`is_token_of`] checks whether the token is genuine.
fn token_of_run(api: &ApiContext, request: &Request) -> Option<(AttemptId, String)> {
    let token = bearer(request.headers())?;
    let of = run_folder::attempt_of_token(token)?;
    may_ask(api, request, of).then(|| (of, token.to_owned()))
}

/// Whether the tools of this attempt may make the request.
fn may_ask(api: &ApiContext, request: &Request, of: AttemptId) -> bool {
    let agent = of.agent.to_string();
    let post = match (request.method(), request.uri().path()) {
        (&Method::GET, "/api/agents" | "/api/state" | "/api/inbox") => return true,
        (&Method::GET, _) => false,
        (&Method::POST, _) => true,
        _ => return false,
    };
    let own = |prefix: &str| request.uri().path().strip_prefix(prefix)?.strip_prefix(agent.as_str());
    let about_itself = matches!((post, own("/api/agents/")), (false, Some("")) | (true, Some("/calls")));
    let its_mail = matches!((post, own("/api/mail/")), (false, Some("")) | (true, Some("/read" | "/wait")));
    let quest = api.handle.view().assignment(of.agent).map(|assignment| format!("/api/quests/{}", assignment.quest));
    let its_quest = !post && quest.is_some_and(|quest| request.uri().path() == quest);
    about_itself || its_mail || its_quest
}

async fn is_token_of(api: &ApiContext, of: AttemptId, offered: &str) -> bool {
    let open = api.handle.view().run(of.agent).is_some_and(|run| run.is_open() && run.attempt_id(of.agent) == of);
    if !open {
        return false;
    }
    let folder = RunFolder::of(&api.settings.defaults().project, of);
    let token = blocking(move || folder.token()).await;
    matches!(token, Ok(Some(token)) if token.as_bytes().ct_eq(offered.as_bytes()).into())
}

/// Every client that reaches the port may ask whether the daemon is alive.
pub fn is_open(path: &str) -> bool {
    path == "/api/health"
}

/// The name or address in `name:port`, `[address]:port` and the like.
fn bare_host(authority: &str) -> Option<&str> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(_) => authority.split_at(authority.find(']')? + 1),
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = rest.strip_prefix(':').unwrap_or("0");
    ((rest.is_empty() || rest.starts_with(':')) && port.parse::<u16>().is_ok()).then_some(host)
}

/// A text from an unknown client, short enough to be sent back.
pub fn cut(text: &str) -> String {
    /// Long enough to recognise the text.
    const SHOWN_CHARS: usize = 100;
    text.chars().take(SHOWN_CHARS).collect()
}

pub async fn admit(State(api): State<Arc<ApiContext>>, request: Request, next: Next) -> Response {
    let mut response = match api.guard.opens(&request) {
        Some(opened) => opened,
        None => {
            let comes_from_run = match token_of_run(&api, &request) {
                Some((of, token)) => is_token_of(&api, of, &token).await,
                None => false,
            };
            match api.guard.check(request.headers(), request.uri(), comes_from_run) {
                Ok(()) => next.run(request).await,
                Err(error) if error.code == "no_token" && wants_page(&request) => page::locked(&error),
                Err(error) => error.into_response(),
            }
        }
    };
    // Only the daemon's own page may use an answer, now or from a cache. Only its fingerprinted files may be cached.
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}

/// Whether a person has entered an address of the page, so that a person sees the answer.
fn wants_page(request: &Request) -> bool {
    let is_api = request.uri().path().starts_with("/api/");
    request.method() == Method::GET && !is_api && page::is_for_browser(request.headers())
}

fn link_token(query: Option<&str>) -> Option<&str> {
    query?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123";

    fn check(listen: &str, headers: &[(&'static str, &str)]) -> Result<(), &'static str> {
        let guard = Guard::new(Auth::Token, TOKEN.into(), listen.parse().unwrap(), vec!["box.local".into()]);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        guard.check(&map, &Uri::from_static("/api/events"), false).map_err(|error| error.code)
    }

    #[test]
    fn only_our_own_names_are_answered() {
        let bearer = format!("Bearer {TOKEN}");
        let ask = |listen, host| check(listen, &[("host", host), ("authorization", &bearer)]);
        for host in ["127.0.0.1:7", "localhost:7", "[::1]:7", "LOCALHOST", "box.local:7"] {
            assert_eq!(ask("127.0.0.1:7", host), Ok(()), "{host}");
        }
        for host in [
            "evil.example:7",
            "127.0.0.1.evil.example",
            "10.0.0.1:7",
            "",
            "localhost.evil.example",
            "[::1].evil.example",
            "[::1",
            "me@localhost",
            "localhost:x",
            "127.0.0.1:7:8",
        ] {
            assert_eq!(ask("127.0.0.1:7", host), Err("wrong_host"), "{host}");
        }
        assert_eq!(ask("0.0.0.0:7", "10.0.0.1:7"), Ok(()));
        assert_eq!(ask("0.0.0.0:7", "evil.example:7"), Err("wrong_host"));
    }

    #[test]
    fn a_foreign_page_is_refused_even_with_the_cookie() {
        let cookie = format!("a=b; hatchery_7={TOKEN}");
        let ask = |origin| check("127.0.0.1:7", &[("host", "127.0.0.1:7"), ("cookie", &cookie), ("origin", origin)]);
        assert_eq!(ask("http://127.0.0.1:7"), Ok(()));
        for origin in ["http://127.0.0.1:8", "https://127.0.0.1:7", "http://evil.example", "null"] {
            assert_eq!(ask(origin), Err("wrong_origin"), "{origin}");
        }
    }

    #[test]
    fn a_page_of_another_port_is_foreign_also_without_an_origin() {
        let bearer = format!("Bearer {TOKEN}");
        let ask = |site| {
            check("127.0.0.1:7", &[("host", "127.0.0.1:7"), ("authorization", &bearer), ("sec-fetch-site", site)])
        };
        for site in ["same-origin", "none"] {
            assert_eq!(ask(site), Ok(()), "{site}");
        }
        for site in ["same-site", "cross-site", "whatever"] {
            assert_eq!(ask(site), Err("wrong_origin"), "{site}");
        }
    }

    #[test]
    fn a_request_for_two_hosts_is_for_none() {
        let bearer = format!("Bearer {TOKEN}");
        let twice = [("host", "localhost:7"), ("host", "localhost:7"), ("authorization", &bearer)];
        assert_eq!(check("127.0.0.1:7", &twice), Err("two_hosts"));
        let guard = Guard::new(Auth::Token, TOKEN.into(), "127.0.0.1:7".parse().unwrap(), Vec::new());
        let headers = HeaderMap::from_iter([
            (header::HOST, HeaderValue::from_static("localhost:7")),
            (header::AUTHORIZATION, HeaderValue::from_str(&bearer).unwrap()),
        ]);
        let ask = |uri| guard.check(&headers, &Uri::from_static(uri), false).map_err(|error| error.code);
        assert_eq!(ask("http://evil.example/api/events"), Err("two_hosts"));
        assert_eq!(ask("http://localhost:7/api/events"), Ok(()));
    }

    #[test]
    fn the_token_must_be_right() {
        let ask = |name, value: &str| check("127.0.0.1:7", &[("host", "localhost:7"), (name, value)]);
        assert_eq!(ask("authorization", &format!("bearer {TOKEN}")), Ok(()));
        assert_eq!(ask("cookie", &format!("hatchery_7={TOKEN}")), Ok(()));
        for value in ["Bearer", "Bearer x", "Basic 0123456789abcdef0123", "0123456789abcdef0123"] {
            assert_eq!(ask("authorization", value), Err("no_token"), "{value}");
        }
        assert_eq!(ask("cookie", &format!("hatchery_8={TOKEN}")), Err("no_token"));
    }
}
