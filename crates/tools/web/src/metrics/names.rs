//! What the declarations of rows do not say: the prefix of each schema's names, the labels of objects, and the fields
//! that are no metric.

/// The rows that have metrics, and the prefix of their names.
const PREFIXES: &[(&str, &str)] = &[
    ("now/1", "headend"),
    ("pool/1", "headend_pool"),
    ("pool.prefix/1", "headend_prefix_pool"),
    ("pool.outside/1", "headend_pool_outside"),
    ("nat/1", "headend_nat"),
    ("radius.server/1", "headend_radius_server"),
    ("radius/1", "headend_radius"),
    ("bgp.neighbor/1", "headend_bgp_neighbor"),
    ("event.handler/1", "headend_event_handler"),
    ("subscriber.detail/1", "headend_subscriber"),
    ("qos.run/1", "headend_qos"),
    ("qos.node/1", "headend_qos_node"),
];

/// Fields that are no metric, by schema and path.
const LEFT_OUT: &[(&str, &str)] = &[
    // The scrape has its own time.
    ("now/1", "at_s"),
    // `pool/1` has more of each pool.
    ("now/1", "pools"),
    ("now/1", "prefix_pools"),
    // `event.handler/1` has more of each handler.
    ("now/1", "event_loop.handlers_s"),
    // `radius/1` has these too.
    ("now/1", "radius.outstanding"),
    ("now/1", "radius.waiting"),
    ("now/1", "radius.failed"),
    // Prometheus computes it from the total and the calls.
    ("event.handler/1", "mean_us"),
    // A label that changes with each start would make new series.
    ("qos.run/1", "pid"),
    ("qos.run/1", "taken_ns"),
    ("qos.node/1", "handle"),
    // The rows count in the same order, and a version is no label.
    ("bgp.neighbor/1", "version"),
    ("bgp.neighbor/1", "state_or_prefixes"),
];

/// Fields with another name, by schema and path.
const RENAMED: &[(&str, &str, &str)] = &[
    ("event.handler/1", "total_us", "busy_us"),
    ("pool/1", "left_out", "excluded"),
    ("pool/1", "taken", "leased"),
    ("pool/1", "came_back", "reused"),
    ("pool.prefix/1", "taken", "leased"),
    ("pool.prefix/1", "came_back", "reused"),
    ("radius.server/1", "recorded", "accounting_responses"),
    ("now/1", "radius.round_trips", "round_trip"),
    ("now/1", "subscribers.by_state", ""),
    ("now/1", "tunnels.by_state", ""),
];

/// The label of an object's keys, by schema and path; `kind` if it is not here.
const KEYS: &[(&str, &str, &str)] = &[
    ("now/1", "subscribers.by_state", "state"),
    ("now/1", "subscribers.by_version", "version"),
    ("now/1", "subscribers.ended", "cause"),
    ("now/1", "subscribers.refused", "reason"),
    ("now/1", "tunnels.by_state", "state"),
    ("now/1", "traffic.dropped", "reason"),
    ("nat/1", "dropped", "reason"),
    ("radius.server/1", "ignored_because", "reason"),
    ("qos.node/1", "details", "detail"),
];

/// The label of an Id or a text field, by schema and path. An Id has its own name as label if it is not here; a text
/// field is no label.
const LABELS: &[(&str, &str, &str)] = &[
    ("pool/1", "name", "pool"),
    ("pool.prefix/1", "name", "pool"),
    ("radius.server/1", "name", "server"),
    ("event.handler/1", "name", "handler"),
    ("bgp.neighbor/1", "name", "peer"),
    ("qos.node/1", "name", "class"),
    ("qos.node/1", "parent", "parent"),
];

/// Text fields whose value becomes a sample of 1 with the label `state`, by schema and path.
const STATES: &[(&str, &str)] = &[
    ("radius.server/1", "state"),
    ("bgp.neighbor/1", "state"),
    ("subscriber.detail/1", "state"),
];

/// States whose text is more exact in another field, if the text there starts with the state: `Idle (stopped)`.
const EXACT_STATES: &[(&str, &str, &str)] = &[("bgp.neighbor/1", "state", "state_or_prefixes")];

/// Fields whose documentation is about the row and not about the metric, by schema and path.
const HELPS: &[(&str, &str, &str)] = &[
    (
        "now/1",
        "radius.round_trips",
        "Round trips of RADIUS requests.",
    ),
    ("now/1", "event_loop.lateness", "Lateness of timers."),
    (
        "now/1",
        "tunnels.sessions",
        "Established sessions of all tunnels.",
    ),
    (
        "pool.outside/1",
        "draining",
        "Fixed addresses in use of ranges that were removed from their pool.",
    ),
    ("pool/1", "size", "Addresses of the pool."),
    ("pool.prefix/1", "size", "Prefixes of the pool."),
    ("event.handler/1", "calls", "Calls of the handler."),
    (
        "event.handler/1",
        "total_us",
        "Time of all calls of the handler.",
    ),
    (
        "event.handler/1",
        "longest_us",
        "Time of the longest call of the handler.",
    ),
    (
        "now/1",
        "bgp.hold_margin_s",
        "The least time that was left on a hold timer in the last second with messages.",
    ),
];

/// The prefix of the names of a schema's metrics; none: its rows have none.
pub(super) fn prefix(schema: &str) -> Option<&'static str> {
    let found = PREFIXES.iter().find(|(known, _)| *known == schema);
    found.map(|(_, prefix)| *prefix)
}

pub(super) fn is_left_out(schema: &str, path: &str) -> bool {
    LEFT_OUT.contains(&(schema, path))
}

pub(super) fn has_state(schema: &str, path: &str) -> bool {
    STATES.contains(&(schema, path))
}

/// The field with a more exact text of a state.
pub(super) fn exact_state_of(schema: &str, path: &str) -> Option<&'static str> {
    lookup(EXACT_STATES, schema, path)
}

/// The name of a field in its metric.
pub(super) fn name_of<'a>(schema: &str, path: &str, field: &'a str) -> &'a str {
    lookup(RENAMED, schema, path).unwrap_or(field)
}

/// The help text of a field's metric.
pub(super) fn help_of<'a>(schema: &str, path: &str, help: &'a str) -> &'a str {
    lookup(HELPS, schema, path).unwrap_or(help)
}

/// The label of an object's keys.
pub(super) fn key_of(schema: &str, path: &str) -> &'static str {
    lookup(KEYS, schema, path).unwrap_or("kind")
}

/// The label of a field, if the table has one.
pub(super) fn label_of(schema: &str, path: &str) -> Option<&'static str> {
    lookup(LABELS, schema, path)
}

fn lookup(table: &[(&str, &str, &'static str)], schema: &str, path: &str) -> Option<&'static str> {
    let found = table
        .iter()
        .find(|(known, place, _)| (*known, *place) == (schema, path));
    found.map(|(_, _, value)| *value)
}

#[cfg(test)]
mod tests {
    use control::rows::{Field, Kind, row_type};

    use super::*;

    fn exists(fields: &[Field], path: &str) -> bool {
        let (first, rest) = match path.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (path, None),
        };
        fields.iter().any(|field| match (field.kind, rest) {
            (Kind::Flat(part), _) if exists(part, path) => true,
            (Kind::Part(part), Some(rest)) => field.name == first && exists(part, rest),
            (_, None) => field.name == first,
            _ => false,
        })
    }

    #[test]
    fn every_path_of_the_tables_is_declared() {
        let two = LEFT_OUT.iter().chain(STATES).copied();
        let three = [RENAMED, KEYS, LABELS, HELPS].concat();
        let three = three.iter().map(|(schema, path, _)| (*schema, *path));
        for (schema, path) in two.chain(three) {
            let row = row_type(schema).unwrap();
            assert!(exists(row.fields, path), "{schema} has no field {path}");
            assert!(prefix(schema).is_some(), "{schema} has no metrics");
        }
        for (schema, _) in PREFIXES {
            assert!(row_type(schema).is_some(), "there is no {schema}");
        }
    }
}
