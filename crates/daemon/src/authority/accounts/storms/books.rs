//! What was asked, answered, noted, sent and received, over all lives of the edge.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use aaa::accounting::SessionId;
use wire::radius::attribute::{ACCT_SESSION_ID, ACCT_STATUS_TYPE, status};
use wire::radius::{Attributes, Packet, code};

/// An identifier in flight: server, socket, number.
type Place = (SocketAddr, u32, u8);

/// One record.
#[derive(Default)]
struct Noted {
    /// In which life it was noted.
    life: u32,
    /// The store has committed it.
    on_disk: bool,
    /// Servers got it so often.
    received: u32,
    /// A server's answer came.
    acknowledged: bool,
    /// The store has committed that.
    forgotten: bool,
    /// The edge was killed before it was on disk.
    may_be_lost: bool,
}

/// What happened, for who wants to know whether it did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) starts: u64,
    pub(super) records: u64,
    pub(super) received_again: u64,
    pub(super) lost: u64,
    pub(super) sent_again_after_a_kill: u64,
    pub(super) kills: u64,
    pub(super) given_up: u64,
}

impl Seen {
    pub(super) fn add(&mut self, other: Self) {
        self.starts += other.starts;
        self.records += other.records;
        self.received_again += other.received_again;
        self.lost += other.lost;
        self.sent_again_after_a_kill += other.sent_again_after_a_kill;
        self.kills += other.kills;
        self.given_up += other.given_up;
    }
}

#[derive(Default)]
pub(super) struct Books {
    pub(super) seen: Seen,
    life: u32,
    /// Sessions for which a server said yes.
    accepted: HashSet<Vec<u8>>,
    /// By the record's octets, of which no two are alike.
    noted: HashMap<Vec<u8>, Noted>,
    /// By the store's number, which may come again once its record is gone.
    numbers: HashMap<u64, Vec<u8>>,
    /// What is outstanding, where it is, and who has an identifier.
    open: HashMap<Vec<u8>, Option<Place>>,
    holders: HashMap<Place, Vec<u8>>,
}

fn find(record: &[u8], kind: u8) -> Vec<u8> {
    let mut attributes = Attributes::parse(record).expect("a record");
    let found = attributes.find(|attribute| attribute.kind == kind);
    found.expect("it has one").value.to_vec()
}

fn is_of(record: &[u8], kind: u32) -> bool {
    find(record, ACCT_STATUS_TYPE) == kind.to_be_bytes()
}

impl Books {
    /// A server says yes.
    pub(super) fn accepted(&mut self, request: &Packet<'_>) {
        let session = request.find(ACCT_SESSION_ID).expect("it has one");
        self.accepted.insert(session.value.to_vec());
    }

    /// Somebody is on line.
    pub(super) fn up(&mut self, session: SessionId) {
        self.seen.starts += 1;
        let is_accepted = self.accepted.contains(&session.text()[..]);
        assert!(is_accepted, "{session} is on line, and no server let it in");
    }

    /// A record was handed to the store and to the delivery.
    pub(super) fn noted(&mut self, number: u64, record: &[u8]) {
        self.seen.records += 1;
        let noted = Noted {
            life: self.life,
            ..Noted::default()
        };
        let before = self.noted.insert(record.to_vec(), noted);
        assert!(before.is_none(), "two records alike");
        self.numbers.insert(number, record.to_vec());
    }

    /// A server got a record.
    pub(super) fn received(&mut self, request: &Packet<'_>) {
        let record = request.attributes().octets();
        let noted = self.noted.get_mut(record);
        let noted = noted.expect("what a server gets was noted, octet for octet");
        self.seen.received_again += u64::from(noted.received > 0);
        noted.received += 1;
    }

    /// What was noted and acknowledged until now is on disk.
    pub(super) fn committed(&mut self) {
        let life = self.life;
        for noted in self.noted.values_mut() {
            noted.on_disk |= noted.life == life;
            noted.forgotten |= noted.acknowledged;
        }
    }

    /// The edge is killed; returns the number of its next life.
    pub(super) fn killed(&mut self) -> u32 {
        self.seen.kills += 1;
        for noted in self.noted.values_mut() {
            noted.may_be_lost |= noted.life == self.life && !noted.on_disk;
            if noted.acknowledged && !noted.forgotten {
                noted.acknowledged = false;
                self.seen.sent_again_after_a_kill += u64::from(noted.on_disk);
            }
        }
        self.open.clear();
        self.holders.clear();
        self.life += 1;
        self.life
    }

    /// A request leaves for a server: its identifier is nobody else's there, and it is none that has been answered.
    pub(super) fn sent(&mut self, peer: SocketAddr, socket: u32, octets: &[u8]) {
        let request = Packet::parse(octets).expect("a request");
        let place = (peer, socket, request.identifier());
        let name = match request.code() {
            code::ACCOUNTING_REQUEST => {
                let record = request.attributes().octets();
                self.check_order(record);
                record.to_vec()
            }
            _ => find(request.attributes().octets(), ACCT_SESSION_ID),
        };
        let before = self.holders.insert(place, name.clone());
        if let Some(other) = before.filter(|other| *other != name) {
            let at = self.open.get(&other).copied().flatten();
            assert_ne!(at, Some(place), "two requests of one identifier");
        }
        self.open.insert(name, Some(place));
    }

    fn check_order(&self, record: &[u8]) {
        let noted = self.noted.get(record).expect("what is sent was noted");
        assert!(
            !noted.acknowledged,
            "what is acknowledged is not sent again"
        );
        if !is_of(record, status::STOP) || self.seen.given_up > 0 {
            return;
        }
        let session = find(record, ACCT_SESSION_ID);
        let mut others = self.noted.iter();
        let start = others.find(|(other, _)| {
            is_of(other, status::START) && find(other, ACCT_SESSION_ID) == session
        });
        let (_, start) = start.expect("it had a start");
        assert!(start.acknowledged, "a Stop before its Start");
    }

    /// A request about a session has its answer, or none.
    pub(super) fn answered(&mut self, session: SessionId) {
        self.open.remove(&session.text()[..]);
    }

    /// A server has a record, as the client says.
    pub(super) fn recorded(&mut self, number: u64) {
        let record = &self.numbers[&number];
        self.open.remove(record);
        let noted = self.noted.get_mut(record).expect("it was noted");
        assert!(noted.received > 0, "acknowledged, and no server has it");
        noted.acknowledged = true;
    }

    pub(super) fn not_recorded(&mut self, number: u64) {
        self.open.remove(&self.numbers[&number]);
    }

    /// Every record is with a server, but for what a kill took; every Start has its Stop, but for whom a kill took.
    pub(super) fn assert_whole(&self) {
        for (record, noted) in &self.noted {
            assert!(
                noted.received > 0 || noted.may_be_lost,
                "lost: {record:02x?}"
            );
            let session = find(record, ACCT_SESSION_ID);
            if is_of(record, status::START) && noted.life == self.life {
                let is_stop = |other: &&Vec<u8>| {
                    is_of(other, status::STOP) && find(other, ACCT_SESSION_ID) == session
                };
                assert_eq!(self.noted.keys().filter(is_stop).count(), 1);
            }
        }
        assert!(self.open.is_empty(), "{} have no answer", self.open.len());
    }

    pub(super) fn lost(&self) -> u64 {
        let lost = self.noted.values().filter(|noted| noted.received == 0);
        lost.count() as u64
    }
}
