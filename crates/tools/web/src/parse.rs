//! Parsers of what others send: headers, query strings, the token, lines of the control socket. They read bytes and
//! nothing else, so the fuzz targets call the same functions as the server.

use std::net::IpAddr;

use axum::extract::Query;
use control::reply::Reply;
use control::{VERSION, rows};
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use axum::http::Uri;

/// The least length of a token in bytes.
pub const TOKEN_MIN: usize = 16;

/// The arguments of an address.
///
/// # Errors
/// What is wrong with them.
pub fn arguments<T: DeserializeOwned>(uri: &Uri) -> Result<T, String> {
    let read = Query::<T>::try_from_uri(uri);
    read.map(|Query(arguments)| arguments)
        .map_err(|error| error.body_text())
}

/// Whether an `Accept` header likes OpenMetrics 1.0 at least as much as the Prometheus text format.
#[must_use]
pub fn prefers_open_metrics(accept: &str) -> bool {
    let mut open = 0.0;
    let mut plain = 0.0;
    for part in accept.split(',') {
        let mut pieces = part.split(';').map(str::trim);
        let kind = pieces.next().unwrap_or_default().to_ascii_lowercase();
        let (mut quality, mut version) = (1.0, None);
        for piece in pieces {
            match piece.split_once('=') {
                Some(("q", text)) => quality = text.parse().unwrap_or(0.0),
                Some(("version", text)) => version = Some(text.trim_matches('"')),
                _ => {}
            }
        }
        match (kind.as_str(), version) {
            ("application/openmetrics-text", None | Some("1.0.0" | "0.0.1")) => {
                open = f64::max(open, quality);
            }
            ("text/plain" | "text/*" | "*/*", None | Some("0.0.4")) => {
                plain = f64::max(plain, quality);
            }
            _ => {}
        }
    }
    open > 0.0 && open >= plain
}

/// A host without its port.
#[must_use]
pub fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

/// Whether a host's name is one of this host for itself.
#[must_use]
pub fn is_loopback(name: &str) -> bool {
    let is_address = |name: &str| {
        name.parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
    };
    name.eq_ignore_ascii_case("localhost") || is_address(name)
}

/// Whether an `Origin` header names this host with its port.
#[must_use]
pub fn is_origin_of(origin: &str, host: &str) -> bool {
    let place = origin.split_once("://").map(|(_, place)| place);
    place.is_some_and(|place| place.eq_ignore_ascii_case(host))
}

/// The values of the cookie `name` in a `Cookie` header.
pub fn cookies<'a>(header: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    header
        .split(';')
        .filter_map(move |cookie| cookie.trim().strip_prefix(name)?.strip_prefix('='))
}

/// The token of a file: its only line.
#[must_use]
pub fn token(file: &[u8]) -> Option<&[u8]> {
    let token = file.trim_ascii();
    let is_token = token.len() >= TOKEN_MIN && token.iter().all(u8::is_ascii_graphic);
    is_token.then_some(token)
}

/// One line of a daemon's reply.
///
/// # Errors
/// The daemon is of another version, or no daemon: what differs.
pub fn reply(line: &[u8]) -> Result<Reply<'_>, String> {
    #[derive(Deserialize)]
    struct Head {
        v: u32,
    }
    let other = |what: String| {
        format!(
            "{what}; this headend web {} speaks version {VERSION} of the control protocol: use the same version for both",
            env!("CARGO_PKG_VERSION")
        )
    };
    let not_ours = |_| other("the daemon sent a line that is not of this protocol".into());
    let head: Head = serde_json::from_slice(line).map_err(not_ours)?;
    if head.v != VERSION {
        return Err(other(format!("the daemon speaks version {}", head.v)));
    }
    serde_json::from_slice(line).map_err(not_ours)
}

/// Refuses rows of a schema that only another version has.
///
/// # Errors
/// The schema, and both versions.
pub fn check_schema(row: &str) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Head<'a> {
        schema: Option<&'a str>,
    }
    let schema = serde_json::from_str::<Head<'_>>(row).ok();
    match schema.and_then(|head| head.schema) {
        Some(schema) if rows::row_type(schema).is_none() => Err(format!(
            "the daemon is of another version than this headend web {}, which has no rows of {schema}",
            env!("CARGO_PKG_VERSION")
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_taken_apart() {
        for (host, name, local) in [
            ("localhost:8080", "localhost", true),
            ("LOCALHOST", "LOCALHOST", true),
            ("127.0.0.1:1", "127.0.0.1", true),
            ("[::1]:1", "::1", true),
            ("[::1]", "::1", true),
            ("localhost.evil.example", "localhost.evil.example", false),
            ("127.0.0.1.evil.example:80", "127.0.0.1.evil.example", false),
            ("192.0.2.1", "192.0.2.1", false),
            ("", "", false),
        ] {
            let found = (host_name(host), is_loopback(host_name(host)));
            assert_eq!(found, (name, local));
        }
    }

    #[test]
    fn an_origin_is_of_the_same_host_and_port() {
        assert!(is_origin_of("http://Localhost:1", "localhost:1"));
        for foreign in [
            "null",
            "",
            "localhost:1",
            "http://localhost",
            "http://localhost:1/",
        ] {
            assert!(!is_origin_of(foreign, "localhost:1"), "{foreign}");
        }
    }
}
