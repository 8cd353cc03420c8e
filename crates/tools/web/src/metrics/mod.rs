//! `/metrics`: what Prometheus scrapes, made of the rows' declarations.
//!
//! | file | purpose |
//! |---|---|
//! | `names` | what the declarations do not say: prefixes, labels, fields left out |
//! | `rows` | rows to families of samples |
//! | `text` | families to text: Prometheus 0.0.4 and OpenMetrics 1.0 |

mod names;
mod rows;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{self, App};
use crate::fail::Fail;
use crate::link::Rows;
use rows::Families;
use text::Format;

/// Rows of one verb in a scrape.
pub(crate) const ROWS_MAX: usize = 10_000;

/// The verb that lists BGP peers, of which a scrape takes a limited number.
const PEERS: &str = "show.bgp.summary";

/// What a scrape asks the daemon. Each costs it a number of rows that does not grow with the subscribers.
const VERBS: [&str; 5] = [
    "show.pools",
    "show.radius",
    "show.nat",
    PEERS,
    "show.event.cpu",
];

/// `GET /metrics`.
pub(crate) async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let mut families = Families::default();
    families.gauge(
        "headend_web_build_info",
        "The version of headend web.",
        &[("version", env!("CARGO_PKG_VERSION"))],
        1,
    );
    let now = app.look().await;
    families.gauge(
        "headend_up",
        "Whether the daemon answers.",
        &[],
        u8::from(now.is_ok()),
    );
    if let Ok(now) = now {
        families.add_rows(&now);
        for verb in VERBS {
            // What the daemon refuses is not configured: it has no metrics.
            let is_peers = verb == PEERS;
            // The first row is about the speaker, and each other one about a peer.
            let most = if is_peers {
                app.metrics_peers + 1
            } else {
                ROWS_MAX
            };
            if let Ok(found) = app.lookups.ask(&json!({"do": verb}), most).await {
                families.add_rows(&found);
                if is_peers {
                    say_left_out(&mut families, &found);
                }
            }
        }
    }
    if let Some(shaper) = &app.shaper {
        let found = shaper.ask(&json!({"do": "qos.show"}), ROWS_MAX).await;
        families.gauge(
            "headend_qos_shaper_up",
            "Whether the shaper answers.",
            &[],
            u8::from(found.is_ok()),
        );
        if let Ok(found) = found {
            families.add_rows(&found);
        }
    }
    answer(&families, &headers)
}

/// Says how many peers have no metrics of their own.
fn say_left_out(families: &mut Families, found: &Rows) {
    #[derive(Deserialize)]
    struct Summary {
        peers: u64,
    }
    let summary = found.rows.first();
    let Some(summary) = summary.and_then(|row| serde_json::from_str::<Summary>(row).ok()) else {
        return;
    };
    let listed = found.rows.len() as u64 - 1;
    families.gauge(
        "headend_bgp_neighbors_left_out",
        "BGP peers without metrics of their own: --metrics-peers bounds them.",
        &[],
        summary.peers.saturating_sub(listed),
    );
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Name {
    name: String,
}

/// `GET /metrics/subscriber?name=NAME`.
pub(crate) async fn subscriber(
    State(app): State<Arc<App>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Fail> {
    let Name { name } = api::arguments(&uri)?;
    let what: Value = json!({"do": "show.subscriber", "of": {"who": name}, "history": 0});
    let found = app.lookups.ask(&what, ROWS_MAX).await?;
    let mut families = Families::default();
    families.add_rows(&found);
    Ok(answer(&families, &headers))
}

fn answer(families: &Families, headers: &HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let format = Format::of(accept.unwrap_or_default());
    let head = [
        (CONTENT_TYPE, format.content_type()),
        (CACHE_CONTROL, "no-store"),
        (VARY, "Accept"),
    ];
    (head, families.text(format)).into_response()
}
