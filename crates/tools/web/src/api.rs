//! Every address, and what those below `/api/` answer.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use axum::extract::State;
use axum::http::Uri;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, http};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::args::WebArgs;
use crate::fail::Fail;
use crate::feeds::{Feeds, Kind};
use crate::guard::Guard;
use crate::link::{Link, Rows};
use crate::lookups::Lookups;
use crate::{assets, changes, login, metrics, parse};

/// Rows of a lookup, if the client does not say.
pub(crate) const ROWS: usize = 200;
/// Rows of a lookup at most.
const ROWS_MAX: usize = 1000;
/// Rows of ended sessions that the daemon keeps.
const ENDED_MAX: usize = 4096;

/// What all handlers share.
pub(crate) struct App {
    pub(crate) guard: Arc<Guard>,
    pub(crate) daemon: Arc<Link>,
    pub(crate) captures: Arc<Semaphore>,
    pub(crate) lookups: Lookups,
    /// Questions to a shaper, if there is one.
    pub(crate) shaper: Option<Lookups>,
    /// The shaper that changes go to.
    pub(crate) qos: Option<Arc<Link>>,
    /// BGP peers that a scrape lists.
    pub(crate) metrics_peers: usize,
    feeds: Arc<Feeds>,
}

type Shared = State<Arc<App>>;
type Answer = std::result::Result<Response, Fail>;

impl App {
    /// # Errors
    /// A fault of the token's file.
    pub(crate) fn new(args: &WebArgs) -> Result<Arc<Self>> {
        let link = |path: &Path| Arc::new(Link::new(path));
        let daemon = link(&args.socket.path);
        let lookups = Lookups::new(daemon.another());
        let qos = args.qos_socket.as_deref().map(link);
        Ok(Arc::new(Self {
            guard: Arc::new(Guard::new(args)?),
            daemon: Arc::clone(&daemon),
            captures: Arc::new(Semaphore::new(changes::CAPTURES_MAX)),
            shaper: qos.as_ref().map(|qos| Lookups::new(qos.another())),
            feeds: Feeds::new(daemon, qos.clone()),
            qos,
            metrics_peers: args.metrics_peers.min(metrics::ROWS_MAX),
            lookups,
        }))
    }

    /// Asks the daemon for its state, so that a wrong one is named at once.
    pub(crate) async fn look(&self) -> Result<Arc<Rows>, Fail> {
        self.lookups.ask(&json!({"do": "show.now"}), 1).await
    }
}

/// Every address.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(assets::index))
        .route("/assets/{name}", get(assets::asset))
        .route("/metrics", get(metrics::metrics))
        .route("/metrics/subscriber", get(metrics::subscriber))
        .route("/login", get(login::form).post(login::log_in))
        .route("/api/info", get(info))
        .route("/api/stream/now", get(stream_now))
        .route("/api/stream/subscriber", get(stream_subscriber))
        .route("/api/stream/queues", get(stream_queues))
        .route("/api/stream/hosts", get(stream_hosts))
        .route("/api/stream/routes", get(stream_routes))
        .route("/api/history", get(history))
        .route("/api/subscribers", get(subscribers))
        .route("/api/worst", get(worst))
        .route("/api/ended", get(ended))
        .route("/api/routes", get(routes))
        .route("/api/radius", get(radius))
        .route("/api/pools", get(pools))
        .route("/api/filter", get(filter))
        .route("/api/events/bgp", get(bgp_events))
        .route("/api/subscriber/drop", post(changes::drop_subscriber))
        .route("/api/subscriber/capture", get(changes::capture))
        .route("/api/line/rate", post(changes::set_rate))
        .fallback(async || Fail::not_found("there is nothing at this address"))
        .method_not_allowed_fallback(async || {
            let status = http::StatusCode::METHOD_NOT_ALLOWED;
            Fail::new(status, "method", "this address does not take this method")
        })
        .with_state(app)
}

/// The arguments of an address.
pub(crate) fn arguments<T: DeserializeOwned>(uri: &Uri) -> Result<T, Fail> {
    parse::arguments(uri).map_err(Fail::bad)
}

fn json_text(text: String) -> Response {
    let head = [
        (CONTENT_TYPE, "application/json"),
        (CACHE_CONTROL, "no-store"),
    ];
    (head, text).into_response()
}

pub(crate) fn rows_text(rows: &Rows) -> Response {
    json_text(format!(
        "{{\"rows\":{},\"more\":{}}}",
        rows.array(),
        rows.more
    ))
}

async fn info(State(app): Shared) -> Answer {
    let now = app.look().await;
    let (daemon, parts) = match &now {
        Ok(rows) => (json!({"daemon": "up", "reason": null}), parts_of(rows)),
        Err(fail) => (
            json!({"daemon": "gone", "reason": fail.message()}),
            Parts::default(),
        ),
    };
    Ok(json_text(
        json!({
            "schema": "web.info/1",
            "version": env!("CARGO_PKG_VERSION"),
            "allow_changes": app.guard.allow_changes(),
            "csrf": app.guard.csrf(),
            "has_qos": app.shaper.is_some(),
            "has_bgp": parts.bgp.is_some(),
            "has_radius": parts.radius.is_some(),
            "state": daemon,
        })
        .to_string(),
    ))
}

/// The parts of a daemon that its configuration may leave out.
#[derive(Default, Deserialize)]
struct Parts {
    bgp: Option<serde::de::IgnoredAny>,
    radius: Option<serde::de::IgnoredAny>,
}

fn parts_of(rows: &Rows) -> Parts {
    let row = rows.rows.first();
    row.and_then(|row| serde_json::from_str(row).ok())
        .unwrap_or_default()
}

async fn stream_now(State(app): Shared) -> Answer {
    app.feeds.view(Kind::Now)
}

async fn stream_queues(State(app): Shared) -> Answer {
    app.feeds.view(Kind::Queues)
}

async fn stream_hosts(State(app): Shared) -> Answer {
    app.feeds.view(Kind::Hosts)
}

async fn stream_routes(State(app): Shared) -> Answer {
    app.feeds.view(Kind::Routes)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Who {
    who: String,
}

async fn stream_subscriber(State(app): Shared, uri: Uri) -> Answer {
    let Who { who } = arguments(&uri)?;
    app.feeds.view(Kind::Subscriber(who))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HistoryArguments {
    series: Option<String>,
    step_s: Option<u32>,
}

async fn history(State(app): Shared, uri: Uri) -> Answer {
    let HistoryArguments { series, step_s } = arguments(&uri)?;
    let what = with(
        json!({"do": "show.history"}),
        [("series", json!(series)), ("step_s", json!(step_s))],
    );
    Ok(rows_text(&*app.lookups.ask(&what, ENDED_MAX).await?))
}

/// Adds the arguments that are not null.
fn with<const N: usize>(mut what: Value, arguments: [(&str, Value); N]) -> Value {
    for (name, value) in arguments {
        if !value.is_null() {
            what[name] = value;
        }
    }
    what
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubscriberArguments {
    name: Option<String>,
    state: Option<control::request::State>,
    limit: Option<usize>,
}

async fn subscribers(State(app): Shared, uri: Uri) -> Answer {
    let SubscriberArguments { name, state, limit } = arguments(&uri)?;
    let limit = limit.unwrap_or(ROWS);
    if limit == 0 || limit > ROWS_MAX {
        return Err(Fail::bad(format!("limit must be 1 to {ROWS_MAX}")));
    }
    // One row beyond the limit tells that there are more.
    let what = with(
        json!({"do": "show.subscribers", "limit": limit + 1}),
        [("name", json!(name)), ("state", json!(state))],
    );
    Ok(rows_text(&*app.lookups.ask(&what, limit).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorstArguments {
    by: String,
}

async fn worst(State(app): Shared, uri: Uri) -> Answer {
    let WorstArguments { by } = arguments(&uri)?;
    if !["dropped", "round-trip"].contains(&by.as_str()) {
        return Err(Fail::bad("by must be dropped or round-trip"));
    }
    let what = json!({"do": "show.worst", "by": by, "count": 10});
    Ok(rows_text(&*app.lookups.ask(&what, ROWS).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NameArguments {
    name: Option<String>,
}

async fn ended(State(app): Shared, uri: Uri) -> Answer {
    let NameArguments { name } = arguments(&uri)?;
    let what = json!({"do": "show.ended.subscribers"});
    let all = app.lookups.ask(&what, ENDED_MAX).await?;
    let mut rows: VecDeque<Box<str>> = all
        .rows
        .iter()
        .filter(|row| name.as_deref().is_none_or(|name| has_name(row, name)))
        .take(ROWS + 1)
        .cloned()
        .collect();
    let more = rows.len() > ROWS;
    rows.truncate(ROWS);
    let rows = rows.into();
    Ok(rows_text(&Rows { rows, more }))
}

fn has_name(row: &str, name: &str) -> bool {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        name: std::borrow::Cow<'a, str>,
    }
    serde_json::from_str::<Named<'_>>(row).is_ok_and(|row| row.name == name)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilterArguments {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteArguments {
    prefix: Option<String>,
    #[serde(default)]
    longer: bool,
}

async fn routes(State(app): Shared, uri: Uri) -> Answer {
    let RouteArguments { prefix, longer } = arguments(&uri)?;
    let what = with(
        json!({"do": "show.bgp.route", "longer": longer}),
        [("prefix", json!(prefix))],
    );
    Ok(rows_text(&*app.lookups.ask(&what, ROWS).await?))
}

async fn radius(State(app): Shared) -> Answer {
    plain(&app, "show.radius").await
}

async fn pools(State(app): Shared) -> Answer {
    plain(&app, "show.pools").await
}

/// The lines of a filter, each with its hits.
async fn filter(State(app): Shared, uri: Uri) -> Answer {
    let FilterArguments { name } = arguments(&uri)?;
    let what = json!({"do": "show.filter", "name": name});
    Ok(rows_text(&*app.lookups.ask(&what, ROWS).await?))
}

async fn bgp_events(State(app): Shared) -> Answer {
    plain(&app, "show.bgp.events").await
}

async fn plain(app: &App, verb: &str) -> Answer {
    let rows = app.lookups.ask(&json!({"do": verb}), ROWS).await?;
    Ok(rows_text(&rows))
}
