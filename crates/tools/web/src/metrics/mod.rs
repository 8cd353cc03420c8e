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
use rows::Families;
use text::Format;

/// Rows of one verb in a scrape.
const ROWS_MAX: usize = 10_000;

/// What a scrape asks the daemon. Each costs it a number of rows that does not grow with the subscribers.
const VERBS: [&str; 4] = [
    "show.pools",
    "show.radius",
    "show.bgp.summary",
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
            if let Ok(found) = app.lookups.ask(&json!({"do": verb}), ROWS_MAX).await {
                families.add_rows(&found);
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
