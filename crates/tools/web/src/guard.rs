//! Who may ask for what: the host name, the token, where a request came from.
//!
//! - Without token and certificate, only loopback names are served, so that a foreign page cannot reach the server by a
//!   name of its own that points here (DNS rebinding).
//! - A token comes as `Authorization: Bearer`, or in the form of `/login`, which sets a cookie. The cookie holds a random
//!   number, not the token.
//! - A request that changes something needs an `Origin` of this host and the token against forged requests (CSRF) that
//!   `/api/info` tells the page.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, COOKIE, HOST, HeaderName, ORIGIN, REFERRER_POLICY,
    SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use subtle::ConstantTimeEq;

use crate::args::WebArgs;
use crate::fail::Fail;
use crate::{parse, token};

/// The name of the cookie.
const COOKIE_NAME: &str = "headend-web";
/// The header with the token against forged requests.
pub(crate) const CSRF: &str = "x-headend-csrf";
/// Logins kept; the oldest ends when another comes.
const LOGINS_MAX: usize = 128;
/// How long a login lasts.
const LOGIN_TIME: Duration = Duration::from_secs(12 * 3600);
/// Wrong tokens answered within [`WRONG_TIME`]; further ones have to wait.
const WRONG_MAX: usize = 20;
const WRONG_TIME: Duration = Duration::from_secs(10);

/// What every answer says to the browser.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src \
         'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (X_FRAME_OPTIONS, "DENY"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// The rules of one server.
pub(crate) struct Guard {
    token: Option<Vec<u8>>,
    /// Names that a request may give as its host; none: any, because each request is authenticated.
    hosts: Option<Vec<String>>,
    is_secure: bool,
    allow_changes: bool,
    csrf: String,
    logins: Mutex<VecDeque<(String, Instant)>>,
    wrong: Mutex<VecDeque<Instant>>,
}

impl Guard {
    /// # Errors
    /// The token cannot be read, or others can read it too.
    pub(crate) fn new(args: &WebArgs) -> Result<Self> {
        let token = args.token_file.as_deref().map(token::read).transpose()?;
        let is_authenticated = token.is_some() || args.client_ca.is_some();
        Ok(Self {
            token,
            hosts: (!is_authenticated).then(|| args.allow_host.clone()),
            is_secure: args.tls_cert.is_some(),
            allow_changes: args.allow_changes,
            csrf: random()?,
            logins: Mutex::default(),
            wrong: Mutex::default(),
        })
    }

    /// Whether viewers may change something.
    pub(crate) fn allow_changes(&self) -> bool {
        self.allow_changes
    }

    /// The token that a change must carry, if changes are allowed.
    pub(crate) fn csrf(&self) -> Option<&str> {
        self.allow_changes.then_some(self.csrf.as_str())
    }

    /// Whether a login is needed at all.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    fn check_host(&self, host: &str) -> Result<(), Fail> {
        let Some(hosts) = &self.hosts else {
            return Ok(());
        };
        let name = parse::host_name(host);
        if parse::is_loopback(name) || hosts.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Ok(());
        }
        let message =
            format!("this server is not {name:?}; name that host with --allow-host if it is right");
        Err(Fail::new(StatusCode::FORBIDDEN, "host", message))
    }

    /// Where a request that changes something, or costs something, came from.
    fn check_source(&self, request: &Request, host: &str) -> Result<(), Fail> {
        let forbidden = |message: &str| Fail::new(StatusCode::FORBIDDEN, "origin", message);
        let headers = request.headers();
        let site = headers.get("sec-fetch-site");
        if site.is_some_and(|site| site == "cross-site") && request.uri().path() != "/" {
            return Err(forbidden("this request came from a page of another site"));
        }
        // These change nothing; no address takes the last two.
        let harmless = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE];
        if harmless.contains(request.method()) {
            return Ok(());
        }
        let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
        if !origin.is_some_and(|origin| parse::is_origin_of(origin, host)) {
            return Err(forbidden("the Origin header must name this server"));
        }
        if request.uri().path() == "/login" {
            return Ok(());
        }
        let told = headers.get(CSRF).map_or(&b""[..], HeaderValue::as_bytes);
        if is_same(told, self.csrf.as_bytes()) {
            return Ok(());
        }
        let message = format!("the header {CSRF} must have the value of csrf in /api/info");
        Err(Fail::new(StatusCode::FORBIDDEN, "csrf", message))
    }

    fn is_known(&self, headers: &HeaderMap) -> Result<bool, Fail> {
        if self.token.is_none() {
            return Ok(true);
        }
        if let Some(value) = headers.get(AUTHORIZATION) {
            return self.is_token(bearer(value.as_bytes()).unwrap_or_default());
        }
        Ok(cookies(headers).any(|cookie| self.has_login(cookie)))
    }

    /// Whether this is the token.
    ///
    /// # Errors
    /// It is not, as others before it.
    pub(crate) fn is_token(&self, told: &[u8]) -> Result<bool, Fail> {
        let Some(token) = &self.token else {
            return Ok(false);
        };
        if is_same(told, token) {
            return Ok(true);
        }
        let now = Instant::now();
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.retain(|&then| now < then + WRONG_TIME);
        if wrong.len() < WRONG_MAX {
            wrong.push_back(now);
            return Ok(false);
        }
        let message = "too many wrong tokens; try again in 10 s";
        Err(Fail::new(StatusCode::TOO_MANY_REQUESTS, "limit", message))
    }

    /// Begins a login, and returns the header that sets its cookie.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn log_in(&self) -> Result<(HeaderName, String), Fail> {
        let number = random().map_err(|error| Fail::busy(error.to_string()))?;
        let secure = if self.is_secure { "; Secure" } else { "" };
        let seconds = LOGIN_TIME.as_secs();
        let cookie = format!(
            "{COOKIE_NAME}={number}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
        );
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        if logins.len() == LOGINS_MAX {
            logins.pop_front();
        }
        logins.push_back((number, Instant::now() + LOGIN_TIME));
        Ok((SET_COOKIE, cookie))
    }

    fn has_login(&self, told: &str) -> bool {
        let now = Instant::now();
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        logins.retain(|(_, end)| now < *end);
        let same = |(number, _): &(String, Instant)| is_same(number.as_bytes(), told.as_bytes());
        logins.iter().filter(|login| same(login)).count() > 0
    }

    /// Whether the request may pass; if a token is missing, `false`.
    fn judge(&self, request: &Request) -> Result<bool, Fail> {
        let host = host(request)?;
        self.check_host(host)?;
        self.check_source(request, host)?;
        Ok(request.uri().path() == "/login" || self.is_known(request.headers())?)
    }
}

/// The answer to a request without the token.
fn ask_for_token(request: &Request) -> Response {
    if request.uri().path() == "/" && request.method() == Method::GET {
        return Redirect::to("/login").into_response();
    }
    let message = "this server asks for its token: Authorization: Bearer TOKEN";
    let fail = Fail::new(StatusCode::UNAUTHORIZED, "token", message);
    ([(WWW_AUTHENTICATE, "Bearer")], fail).into_response()
}

/// Judges each request, and adds the headers of every answer.
pub(crate) async fn guard(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let mut answer = match guard.judge(&request) {
        Ok(true) => next.run(request).await,
        Ok(false) => ask_for_token(&request),
        Err(fail) => fail.into_response(),
    };
    for (name, value) in HEADERS {
        answer
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// The host that the request asks, with its port.
///
/// # Errors
/// There is none; or there are two, of which a proxy before us may have taken the other (RFC 9112, 3.2).
fn host(request: &Request) -> Result<&str, Fail> {
    let mut named = request.headers().get_all(HOST).iter();
    let first = named.next();
    if named.next().is_some() {
        return Err(Fail::bad("the request names more than one host"));
    }
    if let Some(authority) = request.uri().authority() {
        return Ok(authority.as_str());
    }
    first
        .and_then(|host| host.to_str().ok())
        .ok_or_else(|| Fail::bad("the request names no host"))
}

/// The token of an `Authorization` header. The case of the scheme's name does not matter (RFC 9110, 11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| rest.trim_ascii())
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(COOKIE).into_iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| parse::cookies(value, COOKIE_NAME))
}

/// Compares in a time that depends on the lengths alone.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

/// 32 random bytes in hexadecimal.
fn random() -> Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("no random numbers from /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_scheme_has_any_case() {
        for text in ["Bearer abc", "bearer abc", "BEARER  abc"] {
            assert_eq!(bearer(text.as_bytes()), Some(&b"abc"[..]), "{text}");
        }
        for text in ["", "Bearer", "Basic abc", "Bearerabc"] {
            assert_eq!(bearer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn logins_have_a_limit_and_an_end() {
        let guard = Guard::new(&crate::tests::flags(&[])).unwrap();
        let cookie = |guard: &Guard| {
            let (_, cookie) = guard.log_in().unwrap();
            let (_, value) = cookie.split_once('=').unwrap();
            value.split(';').next().unwrap().to_owned()
        };
        let first = cookie(&guard);
        assert!(guard.has_login(&first) && !guard.has_login(""));
        for _ in 0..LOGINS_MAX {
            cookie(&guard);
        }
        assert!(!guard.has_login(&first));
        let last = cookie(&guard);
        guard.logins.lock().unwrap().back_mut().unwrap().1 = Instant::now();
        assert!(!guard.has_login(&last));
        assert_eq!(guard.logins.lock().unwrap().len(), LOGINS_MAX - 1);
    }
}
