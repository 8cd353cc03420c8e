//! Streams of rows: one poll of the daemon per second and kind while anyone views it. Every viewer gets the same bytes.
//!
//! A viewer that reads slowly skips rows: only the newest is kept. `paced` drops one that does not read at all.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::fail::Fail;
use crate::link::{Fault, Link, Rows};

/// Streams open at a time.
pub(crate) const VIEWERS_MAX: usize = 256;
/// Kinds polled at a time: each subscriber that is viewed is one.
const KINDS_MAX: usize = 32;
/// Rows of one poll.
const ROWS_MAX: usize = 10_000;
/// Sessions of one name: each is a large row, and the page shows fewer.
const SESSIONS_MAX: usize = 100;
/// Rows of the speaker and its peers.
const PEERS_MAX: usize = 301;
/// Hosts of one poll.
const HOSTS: u64 = 20;
/// Time from poll to poll.
const PERIOD: Duration = Duration::from_secs(1);
/// A stream without news sends a comment this often, so that its connection is not taken for dead.
const COMMENT: Duration = Duration::from_secs(15);

/// What a stream shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The whole daemon.
    Now,
    /// One subscriber, by name or address.
    Subscriber(String),
    /// The queues of a shaper.
    Queues,
    /// The hosts that use the line of a shaper, which counts them while it is asked.
    Hosts,
    /// The BGP speaker and its peers.
    Routes,
}

impl Kind {
    fn request(&self) -> Value {
        match self {
            Self::Now => json!({"do": "show.now"}),
            Self::Subscriber(who) => {
                json!({"do": "show.subscriber", "of": {"who": who}, "history": 0})
            }
            Self::Queues => json!({"do": "qos.show"}),
            Self::Hosts => json!({"do": "qos.hosts", "count": HOSTS}),
            Self::Routes => json!({"do": "show.bgp.summary"}),
        }
    }

    fn rows_max(&self) -> usize {
        match self {
            Self::Subscriber(_) => SESSIONS_MAX,
            Self::Routes => PEERS_MAX,
            _ => ROWS_MAX,
        }
    }

    fn event(&self, rows: &Rows) -> String {
        match (self, rows.rows.first()) {
            (Self::Now, Some(row)) => format!("event: row\ndata: {row}\n\n"),
            (Self::Now, None) => String::new(),
            _ => format!("event: rows\ndata: {}\n\n", rows.array()),
        }
    }
}

/// What viewers get next.
#[derive(Clone, Default)]
struct Frame {
    /// Number and event of the daemon's state; 0: not known yet.
    state: (u64, Bytes),
    /// Number and event of the rows.
    rows: (u64, Bytes),
}

/// All streams.
pub(crate) struct Feeds {
    daemon: Arc<Link>,
    qos: Option<Arc<Link>>,
    running: Mutex<HashMap<Kind, Arc<watch::Sender<Frame>>>>,
    viewers: Arc<Semaphore>,
}

impl Feeds {
    pub(crate) fn new(daemon: Arc<Link>, qos: Option<Arc<Link>>) -> Arc<Self> {
        Arc::new(Self {
            daemon,
            qos,
            running: Mutex::default(),
            viewers: Arc::new(Semaphore::new(VIEWERS_MAX)),
        })
    }

    /// The stream of `kind` for one more viewer.
    pub(crate) fn view(self: &Arc<Self>, kind: Kind) -> Result<Response, Fail> {
        let permit = Arc::clone(&self.viewers)
            .try_acquire_owned()
            .map_err(|_| Fail::busy(format!("{VIEWERS_MAX} streams are open already")))?;
        let viewer = Viewer {
            frames: self.subscribe(kind)?,
            state: 0,
            rows: 0,
            _permit: permit,
        };
        let head = [
            (CONTENT_TYPE, "text/event-stream"),
            (CACHE_CONTROL, "no-store"),
            // nginx passes each row on at once.
            (HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        let body = Body::from_stream(stream::unfold(viewer, Viewer::next));
        Ok((head, body).into_response())
    }

    fn subscribe(self: &Arc<Self>, kind: Kind) -> Result<watch::Receiver<Frame>, Fail> {
        let link = match (&kind, &self.qos) {
            (Kind::Queues | Kind::Hosts, Some(qos)) => Arc::clone(qos),
            (Kind::Queues | Kind::Hosts, None) => {
                return Err(Fail::not_found(
                    "there is no shaper to show: start headend web with --qos-socket PATH",
                ));
            }
            _ => Arc::clone(&self.daemon),
        };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = running.get(&kind) {
            return Ok(sender.subscribe());
        }
        if running.len() >= KINDS_MAX {
            return Err(Fail::busy(format!(
                "{KINDS_MAX} different streams are open already"
            )));
        }
        let (sender, receiver) = watch::channel(Frame::default());
        let sender = Arc::new(sender);
        running.insert(kind.clone(), Arc::clone(&sender));
        drop(running);
        tokio::spawn(poll(Arc::clone(self), kind, link, sender));
        Ok(receiver)
    }

    /// Whether nobody views `kind` any more; then it is no longer listed.
    fn is_over(&self, kind: &Kind, sender: &watch::Sender<Frame>) -> bool {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = sender.receiver_count() == 0;
        if is_over {
            running.remove(kind);
        }
        is_over
    }
}

async fn poll(feeds: Arc<Feeds>, kind: Kind, link: Arc<Link>, sender: Arc<watch::Sender<Frame>>) {
    let request = kind.request();
    let mut state = None;
    while !feeds.is_over(&kind, &sender) {
        let next = Instant::now() + PERIOD;
        let found = link.rows(&request, kind.rows_max()).await;
        let now = state_of(&found);
        let changed = state.as_ref() != Some(&now);
        sender.send_modify(|frame| {
            if changed {
                frame.state.0 += 1;
                frame.state.1 = format!("event: state\ndata: {now}\n\n").into();
            }
            let text = match &found {
                Ok(rows) => kind.event(rows),
                // Nothing to show is an answer; no daemon is not.
                Err(Fault::Refused(_)) => kind.event(&Rows::default()),
                Err(_) => String::new(),
            };
            if !text.is_empty() {
                frame.rows.0 += 1;
                frame.rows.1 = text.into();
            }
        });
        if changed {
            state = Some(now);
        }
        sleep_until(next).await;
    }
}

/// The data of the event `state`.
fn state_of(found: &Result<Rows, Fault>) -> Value {
    match found {
        Ok(_) => json!({"daemon": "up", "reason": null}),
        Err(fault) if fault.is_gone() => json!({"daemon": "gone", "reason": fault.message()}),
        Err(fault) => json!({"daemon": "up", "reason": fault.message()}),
    }
}

/// One viewer of a stream.
struct Viewer {
    frames: watch::Receiver<Frame>,
    /// Numbers of the last events sent.
    state: u64,
    rows: u64,
    _permit: OwnedSemaphorePermit,
}

impl Viewer {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        loop {
            let frame = self.frames.borrow_and_update().clone();
            if frame.state.0 != self.state {
                self.state = frame.state.0;
                return Some((Ok(frame.state.1), self));
            }
            if frame.rows.0 != self.rows {
                self.rows = frame.rows.0;
                return Some((Ok(frame.rows.1), self));
            }
            match timeout(COMMENT, self.frames.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) => return Some((Ok(Bytes::from_static(b":\n\n")), self)),
            }
        }
    }
}
