//! What changes something, or costs the daemon work: disconnecting a subscriber, capturing its packets, and changing the
//! rate of a line.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use control::request::{CaptureSubscriber, Do, SubscriberSelector};
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;

use crate::api::{self, App};
use crate::fail::Fail;

/// Captures at a time.
pub(crate) const CAPTURES_MAX: usize = 2;
/// Parts of a capture that wait for a viewer.
const PARTS_MAX: usize = 16;
/// The longest capture in seconds.
const SECONDS_MAX: u64 = 60;

fn check_allowed(app: &App) -> Result<(), Fail> {
    if app.guard.allow_changes() {
        return Ok(());
    }
    let message = "this server is read-only; start it with --allow-changes";
    Err(Fail::new(StatusCode::FORBIDDEN, "read-only", message))
}

fn read(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Fail> {
    body.map_err(|error| match error.status() {
        status @ StatusCode::PAYLOAD_TOO_LARGE => Fail::new(status, "too-large", error.body_text()),
        _ => Fail::bad(error.body_text()),
    })
}

/// The rates of `POST /api/line/rate` in bits per second.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rates {
    up_bps: Option<u64>,
    down_bps: Option<u64>,
}

/// `POST /api/line/rate`.
pub(crate) async fn set_rate(
    State(app): State<Arc<App>>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Fail> {
    check_allowed(&app)?;
    let body = read(body)?;
    let rates: Rates = serde_json::from_slice(&body).map_err(|error| {
        Fail::bad(format!(
            "the body must be {{\"up_bps\":RATE}}, {{\"down_bps\":RATE}} or both: {error}"
        ))
    })?;
    let qos = app.qos.as_ref().ok_or_else(|| {
        Fail::not_found("there is no shaper: start headend web with --qos-socket PATH")
    })?;
    let what = json!({"do": "qos.rate", "up_bps": rates.up_bps, "down_bps": rates.down_bps});
    let changed = qos.change(&what, api::ROWS).await;
    Ok(api::rows_text(
        &changed.map_err(|fault| Fail::from(&fault))?,
    ))
}

/// `POST /api/subscriber/drop`.
pub(crate) async fn drop_subscriber(
    State(app): State<Arc<App>>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Fail> {
    check_allowed(&app)?;
    let body = read(body)?;
    let wrong = |why: String| {
        Fail::bad(format!(
            "the body must be {{\"who\":NAME}} or {{\"tunnel\":ID,\"session\":ID}}{why}"
        ))
    };
    let selector: SubscriberSelector =
        serde_json::from_slice(&body).map_err(|error| wrong(format!(": {error}")))?;
    if selector.who.is_none() && (selector.tunnel.is_none() || selector.session.is_none()) {
        return Err(wrong(String::new()));
    }
    let dropped = app
        .daemon
        .change(&Do::SessionDrop(selector), api::ROWS)
        .await;
    Ok(api::rows_text(
        &dropped.map_err(|fault| Fail::from(&fault))?,
    ))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaptureArguments {
    who: String,
    #[serde(default = "ten")]
    seconds: u64,
}

fn ten() -> u64 {
    10
}

/// `GET /api/subscriber/capture`.
pub(crate) async fn capture(State(app): State<Arc<App>>, uri: Uri) -> Result<Response, Fail> {
    check_allowed(&app)?;
    let CaptureArguments { who, seconds } = api::arguments(&uri)?;
    if !(1..=SECONDS_MAX).contains(&seconds) {
        return Err(Fail::bad(format!("seconds must be 1 to {SECONDS_MAX}")));
    }
    let permit = Arc::clone(&app.captures).try_acquire_owned().map_err(|_| {
        let message = format!("{CAPTURES_MAX} captures are running already");
        Fail::new(StatusCode::TOO_MANY_REQUESTS, "limit", message)
    })?;
    let name = file_name(&who);
    let what = Do::CaptureSubscriber(CaptureSubscriber {
        of: SubscriberSelector {
            who: Some(who),
            ..SubscriberSelector::default()
        },
        wait: false,
        count: None,
        snap: None,
    });
    let capture = app.daemon.capture(&what).await;
    let capture = capture.map_err(|fault| Fail::from(&fault))?;
    let (sender, parts) = mpsc::channel(PARTS_MAX);
    tokio::spawn(async move {
        capture.run(Duration::from_secs(seconds), sender).await;
        drop(permit);
    });
    let parts = stream::unfold(parts, async |mut parts| Some((parts.recv().await?, parts)));
    let head = [
        (CONTENT_TYPE, "application/x-pcapng".to_owned()),
        (CACHE_CONTROL, "no-store".to_owned()),
        (
            CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}.pcapng\""),
        ),
    ];
    Ok((head, Body::from_stream(parts)).into_response())
}

/// A subscriber's name as that of a file.
fn file_name(who: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    let name: String = who
        .chars()
        .take(64)
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    name.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_makes_a_harmless_file_name() {
        assert_eq!(file_name("alice@example"), "alice@example");
        assert_eq!(file_name("../../x\"\r\ny"), "_.._x___y");
        assert_eq!(file_name(&"x".repeat(100)).len(), 64);
    }
}
