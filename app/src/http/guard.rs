//! Who may come in. The daemon does whatever its API is told, so neither a web page nor a rebound DNS name may speak to
//! it: the host must be ours, the origin must be ours, and the caller must know the token.

use super::Api;
use super::error::ApiError;
use crate::config::Auth;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Redirect, Response};
use std::net::IpAddr;
use subtle::ConstantTimeEq as _;

/// What is needed to decide.
#[derive(Clone, Debug)]
pub struct Guard {
    auth: Auth,
    token: String,
    cookie: String,
    allowed_hosts: Vec<String>,
    /// On loopback only loopback names are ours; elsewhere any bare address is, since a rebound name is not an address.
    loopback: bool,
}

impl Guard {
    pub fn new(auth: Auth, token: String, listen: std::net::SocketAddr, allowed_hosts: Vec<String>) -> Self {
        // Browsers share cookies between the ports of one host, and each project has its own daemon.
        let cookie = format!("hatchery_{}", listen.port());
        Self { auth, token, cookie, allowed_hosts, loopback: listen.ip().is_loopback() }
    }

    fn is_our_host(&self, authority: &str) -> bool {
        let host = bare_host(authority);
        let by_address = match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || !self.loopback,
            Err(_) => false,
        };
        by_address
            || host.eq_ignore_ascii_case("localhost")
            || self.allowed_hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host))
    }

    fn knows(&self, offered: &str) -> bool {
        offered.as_bytes().ct_eq(self.token.as_bytes()).into()
    }

    fn check(&self, headers: &HeaderMap, path: &str) -> Result<(), ApiError> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if !self.is_our_host(host) {
            return Err(ApiError::new(
                StatusCode::MISDIRECTED_REQUEST,
                "wrong_host",
                format!("`{host}` is not a name of this daemon"),
                "use the address that `hatchery status` shows, or add the name to allowed_hosts in hatchery.toml",
            ));
        }
        if let Some(origin) = headers.get(header::ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            if origin.strip_prefix("http://").is_none_or(|authority| authority != host) {
                return Err(ApiError::new(
                    StatusCode::FORBIDDEN,
                    "wrong_origin",
                    format!("a page of `{origin}` may not speak to this daemon"),
                    "open the link that `hatchery up` prints",
                ));
            }
        }
        match self.auth == Auth::None || is_open(path) || self.has_token(headers) {
            true => Ok(()),
            false => Err(ApiError::new(
                StatusCode::UNAUTHORIZED,
                "no_token",
                "this needs the project's token",
                "send Authorization: Bearer with the content of .hatchery/token, or open the link that `hatchery up` prints",
            )),
        }
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut cookie = cookies.flat_map(|value| value.split(';')).filter_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.cookie).then_some(value)
        });
        bearer.is_some_and(|token| self.knows(token)) || cookie.any(|token| self.knows(token))
    }
}

/// Whether it is alive may be asked by anybody who reaches the port.
fn is_open(path: &str) -> bool {
    path == "/api/health"
}

fn bare_host(authority: &str) -> &str {
    match authority.rfind(']') {
        Some(end) => &authority[..=end],
        None => authority.split(':').next().unwrap_or_default(),
    }
}

pub async fn admit(State(api): State<Api>, request: Request, next: Next) -> Response {
    let guard = &api.guard;
    // The printed link: the token becomes a cookie and leaves the address line.
    if request.uri().path() == "/"
        && let Some(offered) = link_token(request.uri().query())
        && guard
            .is_our_host(request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default())
        && guard.knows(offered)
    {
        let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", guard.cookie, guard.token);
        return ([(header::SET_COOKIE, cookie), (header::CACHE_CONTROL, "no-store".into())], Redirect::to("/"))
            .into_response();
    }
    match guard.check(request.headers(), request.uri().path()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn link_token(query: Option<&str>) -> Option<&str> {
    query?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    const TOKEN: &str = "0123456789abcdef0123";

    fn check(listen: &str, headers: &[(&'static str, &str)]) -> Result<(), &'static str> {
        let guard = Guard::new(Auth::Token, TOKEN.into(), listen.parse().unwrap(), vec!["box.local".into()]);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        guard.check(&map, "/api/events").map_err(|error| error.code)
    }

    #[test]
    fn only_our_own_names_are_answered() {
        let bearer = format!("Bearer {TOKEN}");
        let ask = |listen, host| check(listen, &[("host", host), ("authorization", &bearer)]);
        for host in ["127.0.0.1:7", "localhost:7", "[::1]:7", "LOCALHOST", "box.local:7"] {
            assert_eq!(ask("127.0.0.1:7", host), Ok(()), "{host}");
        }
        for host in ["evil.example:7", "127.0.0.1.evil.example", "10.0.0.1:7", "", "localhost.evil.example"] {
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
