//! `headend web`: what browsers and a daemon send is read without a panic, and what is accepted keeps its rules.

use std::collections::BTreeMap;

use tool_web::parse::{self, Uri};

/// Splits the data at bytes of 1 into a query, an `Accept` header, a host, an `Origin`, a `Cookie` and a token's file.
///
/// # Panics
/// If a part that was accepted breaks a rule.
pub fn target_request(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == 1);
    let mut next = || parts.next().unwrap_or_default();
    let (query, accept, host, origin, cookie, file) =
        (next(), next(), next(), next(), next(), next());
    let [query, accept, host, origin, cookie] =
        [query, accept, host, origin, cookie].map(String::from_utf8_lossy);
    if let Ok(uri) = format!("/api/subscribers?{query}").parse::<Uri>() {
        let all = parse::arguments::<BTreeMap<String, String>>(&uri);
        let pairs = query.split('&').count();
        assert!(all.is_ok_and(|all| all.len() <= pairs));
    }
    if parse::prefers_open_metrics(&accept) {
        let lower = accept.to_ascii_lowercase();
        assert!(lower.contains("application/openmetrics-text"));
    }
    a_host_is_only_its_own(&host, &origin);
    for value in parse::cookies(&cookie, "headend-web") {
        assert!(!value.contains(';') && cookie.contains(value));
    }
    if let Some(token) = parse::token(file) {
        assert!(token.len() >= parse::TOKEN_MIN && token.iter().all(u8::is_ascii_graphic));
    }
}

/// A name that is accepted as this host is one that resolves to it, and an origin is accepted for its own host alone.
fn a_host_is_only_its_own(host: &str, origin: &str) {
    let name = parse::host_name(host);
    assert!(host.contains(name));
    if parse::is_loopback(name) {
        let is_address = name.starts_with("127.") || name.contains("::") || name.contains(':');
        assert!(
            is_address || name.eq_ignore_ascii_case("localhost"),
            "{name:?}"
        );
    }
    if parse::is_origin_of(origin, host) {
        assert!(
            origin
                .to_ascii_lowercase()
                .ends_with(&host.to_ascii_lowercase())
        );
    }
}

/// Reads the data as lines of a daemon's reply.
///
/// # Panics
/// If a row that was accepted is no JSON.
pub fn target_reply(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(reply) = parse::reply(line) else {
            continue;
        };
        if let Some(row) = reply.row {
            let text = row.get();
            assert!(line.windows(text.len()).any(|part| part == text.as_bytes()));
            if let Err(reason) = parse::check_schema(text) {
                assert!(reason.contains("which has no rows of"), "{reason}");
            }
        }
    }
}
