//! Changes of connected subscribers, as the audit log has them.

use aaa::{Change, Walled};
use base::Duration;
use edge::{ChangeRefusal, SubscriberKey};
use serde_json::{Value, json};

use crate::audit;
use crate::served::Edge;

/// Sessions that one line names. The count has all.
const SESSIONS_MAX: usize = 16;

/// Notes a change in the audit log: who asked for it, the sessions that it was for, and why nothing changed if so.
/// `account` is the Acct-Session-Id of an account.
pub(crate) fn note_change(
    (source, client): (&str, Option<usize>),
    sessions: &[SubscriberKey],
    (change, refusal): (&Change, Option<&ChangeRefusal>),
    edge: &Edge,
    account: impl Fn(u64) -> Option<String>,
) {
    audit::note("changed", || {
        let views = sessions.iter().filter_map(|key| edge.subscriber(*key));
        let named: Vec<Value> = views
            .take(SESSIONS_MAX)
            .map(|view| {
                json!({
                    "name": String::from_utf8_lossy(view.name),
                    "account": account(view.account),
                })
            })
            .collect();
        json!({
            "by": source,
            "client": client,
            "sessions": named,
            "count": sessions.len(),
            "change": values(change),
            "refused": refusal.map(ToString::to_string),
        })
    });
}

/// What was to change. Class attributes are left out: their meaning is their server's secret.
fn values(change: &Change) -> Value {
    let garden = change.garden.as_ref().map(|garden| match garden {
        Walled::Out => aaa::change::NO_GARDEN,
        Walled::In(name) => name,
    });
    let seconds = |span: Option<Duration>| span.map(|span| span.as_millis() / 1_000);
    let [down, up] = change.queue.rates_bps;
    let networks = change.routes.iter().flatten().flatten();
    let networks: Vec<String> = networks.map(ToString::to_string).collect();
    let all = json!({
        "filter": change.filter,
        "garden": garden,
        "rate_down_bps": down,
        "rate_up_bps": up,
        "template": change.queue.templates.iter().flatten().next(),
        "link": change.queue.link,
        "session_timeout_s": seconds(change.session_timeout),
        "idle_timeout_s": seconds(change.idle_timeout),
        "interim_interval_s": seconds(change.interim_interval),
        "routes": change.routes.iter().any(Option::is_some).then_some(networks),
    });
    match all {
        Value::Object(all) => all
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect(),
        other => other,
    }
}
