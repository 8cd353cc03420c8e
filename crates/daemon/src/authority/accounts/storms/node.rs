//! The edge and its owner in a storm. It does the work of a daemon's turn, with simulated sockets.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use aaa::accounting::{Delivery, DeliveryConfig, SessionId};
use aaa::radius::{Client, Config, Event, Nas, ServerConfig};
use base::{Datagram, Duration, Instant, Machine, Route};
use edge::Entry;
use edge::access::Either::First;
use edge::access::Served;
use hashbrown::HashMap;
use ledger::Options;
use ppp::Authentication;
use sim::Rng;

use crate::served::Edge;

use super::books::Books;
use super::server::address;
use super::{EPOCH_S, Nothing, SECRET, SERVERS, endpoint};
use crate::authority::Rules;
use crate::authority::accounts::Accounts;
use crate::authority::radius::{ask, heed};

/// Sockets to servers. Socket 0 of the node is L2TP's.
pub(super) const RADIUS_SOCKETS: u32 = 2;

pub(super) struct Node {
    pub(super) edge: Edge,
    client: Client,
    accounts: Accounts,
    boot: u32,
    books: Rc<RefCell<Books>>,
    rng: Rng,
    /// When the store commits next.
    commit_at: Option<Instant>,
    /// The longest delay before a commit.
    commit_after: Duration,
    /// Sessions by the token of their authentication request.
    asked: HashMap<u64, SessionId>,
}

fn nas() -> Nas {
    Nas {
        identifier: Some("edge".into()),
        address: None,
    }
}

fn client(seed: [u8; 32]) -> Client {
    let mut config = Config::new(nas());
    for n in 0..SERVERS {
        config.servers.push(ServerConfig {
            authentication: Some(address(n, 1812)),
            accounting: Some(address(n, 1813)),
            timeout: Duration::from_secs(1),
            transmissions: 2,
            dead_time: Duration::from_secs(10),
            sockets_max: RADIUS_SOCKETS as u16,
            ..ServerConfig::new(&format!("server{n}"), SECRET)
        });
    }
    Client::new(config, seed).expect("it can work so")
}

fn edge(seed: [u8; 32], boot: u32, rechallenge: u64) -> Edge {
    let range = aaa::pools::Range::new([10, 0, 0, 1].into(), [10, 0, 0, 99].into());
    let spec = aaa::pools::Spec {
        name: "home".into(),
        ranges: vec![range.expect("a range")],
        ..aaa::pools::Spec::default()
    };
    let pools = aaa::Pools::new(vec![spec], Vec::new(), 7).expect("faultless");
    let config = edge::Config {
        terminate: true,
        accounting: true,
        address: [10, 255, 0, 1].into(),
        ipv6: false,
        interim_interval: Duration::from_secs(20),
        ppp: ppp::Config {
            authenticate: vec![Authentication::ChapMd5],
            rechallenge_interval: Duration::from_secs(rechallenge),
            ..ppp::Config::default()
        },
        ..edge::Config::default()
    };
    let pppoe = pppoe::Endpoint::new(pppoe::Config::default(), seed);
    let served = Served::new(endpoint(true, boot as u8), pppoe);
    Edge::new(config, served, pools, seed)
}

impl Node {
    /// Starts one life of the edge, from the store's contents if it has one.
    pub(super) fn new(
        seed: u64,
        life: u32,
        store: Option<&Path>,
        books: Rc<RefCell<Books>>,
        now: Instant,
    ) -> Self {
        let mut rng = Rng::stream(seed, &["life", &life.to_string()]);
        let mut octets = [0; 32];
        rng.fill(&mut octets);
        let boot = 1_000 + life;
        // The store's thread commits only on request.
        let options = Options {
            commit_interval: std::time::Duration::from_secs(86_400),
            read_at_once: true,
            ..Options::default()
        };
        let mut accounts = Accounts::open(store, options, nas(), boot, now).unwrap();
        if store.is_some() && rng.chance(0.5) {
            // Small limits, so that some records have to be read back from disk.
            accounts.delivery = Delivery::new(DeliveryConfig {
                window: 2,
                held_max: 4,
                ..DeliveryConfig::default()
            });
        }
        let rechallenge = [0, 0, 25][rng.below(3) as usize];
        let commit_after = Duration::from_millis(50 + rng.below(8_000));
        let mut node = Self {
            edge: edge(octets, boot, rechallenge),
            client: client(octets),
            accounts,
            boot,
            books,
            rng,
            commit_at: None,
            commit_after,
            asked: HashMap::new(),
        };
        node.close_left_open(now);
        node.accounts.on_or_off(true, wall_s(now));
        node.noted(now);
        node
    }

    /// Closes the sessions that the last life left open.
    fn close_left_open(&mut self, now: Instant) {
        let Self {
            accounts, books, ..
        } = self;
        accounts.close_left_open(|number, record| books.borrow_mut().closed(number, record));
        if accounts.ledger.is_some() {
            books.borrow().assert_closed();
        }
        self.commit_soon(now);
    }

    /// Reports that accounting ends (Accounting-Off).
    pub(super) fn note_off(&mut self, now: Instant) {
        self.work(now);
        self.accounts.on_or_off(false, wall_s(now));
        self.noted(now);
    }

    /// Adds the newest record to the books.
    fn noted(&mut self, now: Instant) {
        assert_eq!(self.accounts.lost, 0);
        let Accounts { newest, record, .. } = &self.accounts;
        self.books.borrow_mut().noted(*newest, record);
        self.commit_soon(now);
    }

    fn commit_soon(&mut self, now: Instant) {
        if self.commit_at.is_none() {
            self.commit_at = Some(now + self.rng.up_to(self.commit_after));
        }
    }

    fn work(&mut self, now: Instant) {
        if self.client.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.client.handle_timeout(now);
        }
        self.accounts.handle_timeout(now);
        let given_up = self.accounts.totals().0.given_up;
        while let Some(event) = self.client.poll_event() {
            self.hear(&event, now);
            let edge = (&mut self.edge, &mut Rules::default());
            heed(event, &mut self.accounts, edge, now);
        }
        let given_up = self.accounts.totals().0.given_up - given_up;
        self.books.borrow_mut().seen.given_up += given_up;
        while let Some(question) = self.edge.poll_question() {
            let key = question.subscriber;
            if let Some(view) = self.edge.subscriber(key) {
                let session = SessionId {
                    boot: self.boot,
                    number: view.account,
                };
                self.asked.insert(key.to_token(), session);
            }
            let edge = (&mut self.edge, &Rules::default());
            ask(&mut self.client, self.boot, &question, edge, now);
        }
        while let Some(account) = self.edge.poll_account() {
            if account.entry == Entry::Start {
                let session = SessionId {
                    boot: self.boot,
                    number: account.number,
                };
                self.books.borrow_mut().up(session);
            }
            self.accounts.take(&account, &self.edge, wall_s(now));
            self.noted(now);
        }
        let any = |_: &[u8]| aaa::radius::ANY_SERVER;
        self.accounts.work(&mut self.client, any, now, wall_s(now));
        if self.commit_at.is_some_and(|at| at <= now) {
            self.commit();
        }
    }

    fn hear(&mut self, event: &Event, now: Instant) {
        let mut books = self.books.borrow_mut();
        match event {
            Event::Accepted { token, .. }
            | Event::Rejected { token, .. }
            | Event::Challenged { token, .. }
            | Event::Failed { token, .. } => books.answered(self.asked[token]),
            Event::Recorded { token } => {
                books.recorded(*token);
                drop(books);
                self.commit_soon(now);
            }
            Event::RecordFailed { token, .. } => books.not_recorded(*token),
            Event::ServerDead { .. } | Event::ServerUp { .. } => {}
        }
    }

    /// Commits all records in the store.
    fn commit(&mut self) {
        self.commit_at = None;
        if let Some(ledger) = &mut self.accounts.ledger {
            assert!(ledger.flush(std::time::Duration::from_secs(60)));
            self.books.borrow_mut().committed();
        }
    }

    /// Asserts that nothing waits in any queue.
    pub(super) fn assert_idle(&self) {
        let totals = self.client.totals();
        assert_eq!((totals.outstanding, totals.waiting), (0, 0));
        assert!(
            self.client
                .services()
                .all(|service| service.outstanding == 0)
        );
        let (delivery, stored) = self.accounts.totals();
        assert!(self.accounts.is_idle(), "{delivery:?} {stored:?}");
        if let Some(stored) = stored {
            assert_eq!((stored.stored, stored.pending), (0, 0), "{stored:?}");
        }
        let counts = self.edge.counts();
        assert_eq!((counts.subscribers, counts.routes), (0, 0));
        assert_eq!(
            self.edge.pools().views().map(|pool| pool.used).sum::<u32>(),
            0
        );
        assert_eq!(self.poll_timeout(), None);
    }
}

fn wall_s(now: Instant) -> u64 {
    EPOCH_S + now.since(Instant::ZERO).as_millis() / 1_000
}

impl Machine for Node {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = crate::served::Event;
    type Discard = core::convert::Infallible;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Self::Discard> {
        let Datagram { route, bytes } = input;
        match route.socket.checked_sub(1) {
            None => self.edge.receive(First(route), bytes, now, &mut Nothing),
            Some(socket) => {
                let route = Route { socket, ..route };
                // The client counts invalid replies itself.
                let _ = self.client.handle(Datagram { route, bytes }, now);
            }
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.edge.handle_timeout(now);
        self.work(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        self.work(now);
        if let Some(route) = self.edge.poll_transmit(now, out) {
            return route.first();
        }
        let to = self.client.poll_transmit(now, out)?;
        self.books.borrow_mut().sent(to.peer, to.socket, out);
        Some(Route {
            peer: to.peer,
            local: None,
            socket: 1 + to.socket,
        })
    }

    fn poll_event(&mut self) -> Option<crate::served::Event> {
        self.edge.poll_event()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let edge = self.edge.poll_timeout();
        let client = self.client.poll_timeout();
        let accounts = self.accounts.poll_timeout().map(|at| (at, "accounts"));
        let commit = self.commit_at.map(|at| (at, "commit"));
        let all = [edge, client, accounts, commit].into_iter().flatten();
        all.min_by_key(|&(at, _)| at)
    }
}
