//! ICMP errors about packets that did not go on (RFC 792, RFC 1191, RFC 4443), to the inside and to subscribers.

use std::collections::VecDeque;

use base::Instant;
use forward::icmp::{Bucket, Error, LENGTH_MAX, Local, Rate, Sender};
use wire::ip::Header;
use wire::ppp::protocol;

use crate::config::Config;
use crate::edge::Edge;
use crate::tap::Passed;

/// Errors to the inside that may wait; the rate allows few.
const WAITING_MAX: usize = 256;

/// What is sent of errors, and how often.
#[derive(Debug)]
pub(crate) struct Errors {
    sender: Sender,
    /// For what belongs to no subscriber.
    nobody: Bucket,
    inside: VecDeque<Box<[u8]>>,
}

impl Errors {
    pub(crate) fn new(config: &Config) -> Self {
        let local = Local {
            v4: config.address,
            v6: config.address_v6,
        };
        Self {
            sender: Sender::new(local, Rate::default()),
            nobody: Bucket::default(),
            inside: VecDeque::new(),
        }
    }

    /// Tells the sender of a packet from the inside what became of it; `bucket` is its receiver's, if it has one.
    #[cold]
    pub(crate) fn tell_inside(
        &mut self,
        error: Error,
        header: &Header,
        packet: &[u8],
        bucket: Option<&mut Bucket>,
        now: Instant,
    ) {
        let mut out = [0; LENGTH_MAX];
        let Self {
            sender,
            nobody,
            inside,
        } = self;
        let bucket = bucket.unwrap_or(nobody);
        if inside.len() < WAITING_MAX
            && let Ok(length) = sender.write(error, header, packet, bucket, now, &mut out)
        {
            inside.push_back(out[..length].into());
        }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sender.sent()
    }
}

impl Edge {
    /// The next ICMP error for the inside, an IP packet, oldest first.
    pub fn poll_inside(&mut self) -> Option<Box<[u8]>> {
        self.errors.inside.pop_front()
    }

    /// Tells a subscriber what became of a packet of its own.
    #[cold]
    pub(crate) fn tell_subscriber(
        &mut self,
        index: u32,
        error: Error,
        header: &Header,
        packet: &[u8],
        now: Instant,
    ) {
        let mut out = [0; LENGTH_MAX];
        let Some(subscriber) = self.subscribers.at_mut(index) else {
            return;
        };
        let bucket = &mut subscriber.bucket;
        let written = self
            .errors
            .sender
            .write(error, header, packet, bucket, now, &mut out);
        let Ok(length) = written else { return };
        let number = match header.version {
            4 => protocol::IPV4,
            _ => protocol::IPV6,
        };
        let (head, octets) = subscriber.compression.head(number);
        if let Some(data) = self.endpoint.data_header(subscriber.session) {
            let mut frame = head[..octets].to_vec();
            frame.extend_from_slice(&out[..length]);
            if self.taps.is_on() {
                let passed = Passed::Outside(data.route);
                let parts = [data.as_bytes(), &frame];
                self.taps.copy(subscriber, passed, true, parts);
            }
            self.outgoing.push(data.route, data.as_bytes(), &frame);
        }
    }
}
