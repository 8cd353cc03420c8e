//! What the readers of BGP configurations share: peers with groups, and the parts of policies.

use std::net::IpAddr;

use crate::Import;
use crate::document::{Document, Table, Value};
use crate::report::Place;

/// The name of the policy that stands for a prefix list.
pub(crate) fn list_policy(name: &str) -> String {
    format!("prefix-list {name}")
}

/// A prefix without the bits behind its length; `None` if the text is not a prefix.
pub(crate) fn network(text: &str) -> Option<String> {
    let (address, length) = text.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    match address.parse().ok()? {
        IpAddr::V4(ip) => {
            let host = u32::MAX.checked_shr(length).unwrap_or(0);
            (length <= 32).then(|| {
                format!(
                    "{}/{length}",
                    std::net::Ipv4Addr::from(u32::from(ip) & !host)
                )
            })
        }
        IpAddr::V6(ip) => {
            let host = u128::MAX.checked_shr(length).unwrap_or(0);
            (length <= 128).then(|| {
                format!(
                    "{}/{length}",
                    std::net::Ipv6Addr::from(u128::from(ip) & !host)
                )
            })
        }
    }
}

/// A prefix with bounds of its length, as a policy has it. Bounds that allow nothing give `None`.
pub(crate) fn bounded(prefix: &str, ge: Option<u32>, le: Option<u32>) -> Option<String> {
    let prefix = network(prefix)?;
    let (ip, length) = prefix.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    let bits = if ip.contains(':') { 128 } else { 32 };
    let (low, high) = match (ge, le) {
        (None, None) => return Some(prefix),
        (ge, le) => (ge.unwrap_or(length), le.unwrap_or(bits)),
    };
    (length <= low && low <= high && high <= bits).then(|| match (low == length, high == bits) {
        (true, true) => format!("{prefix} le {bits}"),
        (false, true) => format!("{prefix} ge {low}"),
        (true, false) => format!("{prefix} le {high}"),
        (false, false) => format!("{prefix} ge {low} le {high}"),
    })
}

/// The condition of a simple regular expression over AS paths: a key and its value.
pub(crate) fn as_path_condition(text: &str) -> Option<(&'static str, Value)> {
    let number = |text: &str| text.parse::<u32>().ok().map(i64::from);
    if text == "^$" {
        return Some(("as_path_length", Value::Number(0)));
    }
    let start = text.strip_prefix('^');
    if let Some(rest) = start {
        if let Some(asn) = rest
            .strip_suffix('_')
            .or(rest.strip_suffix("_.*"))
            .and_then(number)
        {
            return Some(("neighbour_as", Value::Number(asn)));
        }
        if let Some(asn) = rest.strip_suffix('$').and_then(number) {
            return Some(("as_path", Value::Text(asn.to_string())));
        }
        return None;
    }
    let rest = text.strip_prefix(".*").unwrap_or(text).strip_prefix('_')?;
    if let Some(asn) = rest.strip_suffix('$').and_then(number) {
        return Some(("origin_as", Value::Number(asn)));
    }
    let asn = rest
        .strip_suffix(".*")
        .unwrap_or(rest)
        .strip_suffix('_')
        .and_then(number)?;
    Some(("as_path_contains", Value::Number(asn)))
}

/// Adds a policy and its terms to the result.
pub(crate) fn add_policy(config: &mut Document, name: &str, from: &[Place], terms: Vec<Table>) {
    let mut table = Table::each("bgp.policy");
    table.set("name", name, from, "");
    config.tables.push(table);
    config.tables.extend(terms);
}

/// A term with its outcome.
pub(crate) fn term(then: &str, from: &Place) -> Table {
    let mut term = Table::each("bgp.policy.term");
    term.set("then", then, std::slice::from_ref(from), "");
    term
}

/// Puts `then` last, as one writes it.
pub(crate) fn then_last(term: &mut Table) {
    if let Some(at) = term.entries.iter().position(|entry| entry.key == "then") {
        let then = term.entries.remove(at);
        term.entries.push(then);
    }
}

/// Sets a router id where the source has none, and reports that.
pub(crate) fn router_id(import: &mut Import, at: &Place, option: &str) {
    if import.config.table("bgp").get("router_id").is_none() {
        let why = "not in the source: give the address that identifies this router";
        import.config.note("bgp", "router_id", "192.0.2.1", why);
        let why = "the source gives no router id; the result has 192.0.2.1, which must be replaced";
        import.report.lost(at, option, why);
    }
}
