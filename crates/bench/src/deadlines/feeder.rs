//! The BGP peer that announces the table. When the daemon asks for the routes again (RFC 2918), the feeder announces
//! the table again. Start reading at [`run`].

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use anyhow::{Result, bail};
use base::{Duration, Instant};
use reactor::tcp::TcpOptions;
use reactor::{Interest, PollerKind, Reactor, StoreKind, clock};

use crate::bgp::feed::Feed;
use crate::bgp::octets::KEEPALIVE;
use crate::bgp::session::{Session, Stage};

/// The feeder's address.
pub(super) const FEEDER: Ipv4Addr = Ipv4Addr::new(127, 2, 0, 1);

/// The feeder's AS number.
pub(super) const ASN: u32 = 65_001;

/// Time between two KEEPALIVEs.
const INTERVAL: Duration = Duration::from_secs(1);

/// The feeder, in a thread of its own.
pub(super) struct Feeder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Tables that were written whole.
    tables: AtomicU32,
}

impl Feeder {
    /// Connects, and sends the table.
    pub(super) fn start(server: SocketAddr, feed: Arc<Feed>) -> Self {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::spawn(move || run(server, &feed, &own));
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// How often the whole table was sent.
    ///
    /// # Errors
    /// The session has ended.
    pub(super) fn tables(&self) -> Result<u32> {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            bail!("the session of the feeder has ended");
        }
        Ok(self.shared.tables.load(Ordering::Acquire))
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(server: SocketAddr, feed: &Feed, shared: &Shared) -> Result<()> {
    let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::Slab)?;
    let options = TcpOptions {
        send_buffer_bytes: Some(1 << 20),
        ..TcpOptions::default()
    };
    let mut session = Session::begin(&mut reactor, FEEDER, server, options, 0)?;
    let mut buffer = vec![0; 1 << 16];
    let mut rest: &[u8] = &feed.announce;
    let mut said = Instant::ZERO;
    while !shared.stop.load(Ordering::Acquire) {
        let is_up = session.stage == Stage::Established;
        if is_up && !rest.is_empty() {
            let count = session.stream.write(rest)?.unwrap_or(0);
            rest = &rest[count..];
            if rest.is_empty() {
                shared.tables.fetch_add(1, Ordering::Release);
            }
        } else if is_up && clock::now().since(said) >= INTERVAL {
            said = clock::now();
            session.say(&mut reactor, &KEEPALIVE);
        }
        if is_up {
            let interest = if rest.is_empty() {
                Interest::READ
            } else {
                Interest::BOTH
            };
            reactor.set_interest(session.token, interest)?;
        }
        reactor.wait(Some(clock::now() + Duration::from_millis(100)))?;
        while let Some(ready) = reactor.next_ready() {
            if session.stage == Stage::Connecting {
                session.connected(&mut reactor, ASN, 3)?;
            } else if ready.readiness.readable() {
                let came = session.read(&mut reactor, &mut buffer, |_| {});
                // A table that is under way is sent to its end first: a message must not be cut.
                if came.refreshes > 0 && rest.is_empty() {
                    rest = &feed.announce;
                }
            }
        }
        if session.stage == Stage::Closed {
            bail!("the daemon closed the feeder's session");
        }
    }
    Ok(())
}
