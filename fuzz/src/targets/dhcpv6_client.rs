//! Messages to a DHCPv6 client that asks for a prefix: what it sends is valid, and what it holds is what it reported.

use aaa::Prefix;
use base::Instant;
use edge::v6::{PrefixClient, PrefixEvent, PrefixWish};
use wire::dhcpv6::{Association, Kind, Message, code};

const DUID: &[u8] = b"Cli";
const IAID: u32 = 1;

/// A client and what its events say.
struct World {
    client: PrefixClient,
    now: Instant,
    transaction: [u8; 3],
    prefix: Option<Prefix>,
}

/// Takes an octet of flags (Rapid Commit, a length hint), and steps. A step is an octet of length and that many octets,
/// a message to the client. A transaction of zeros becomes the client's. A step of length 0 advances to the client's next
/// deadline, and one of length 255 releases the prefix.
///
/// # Panics
/// If the client sends an invalid message, an ignored message changes its lease, its events contradict its lease, or a
/// deadline that was served is still due.
pub fn target(data: &[u8]) {
    let Some((&flags, mut rest)) = data.split_first() else {
        return;
    };
    let wish = PrefixWish {
        duid: DUID.into(),
        iaid: IAID,
        length: (flags & 2 != 0).then_some(56),
        rapid_commit: flags & 1 != 0,
    };
    let mut world = World {
        client: PrefixClient::new(wish, [flags; 32]),
        now: Instant::ZERO,
        transaction: [0; 3],
        prefix: None,
    };
    world.client.start(world.now);
    while let [length, more @ ..] = rest {
        let length = usize::from(*length);
        rest = more;
        match length {
            0 => {
                let next = world.client.poll_timeout();
                world.now = next.unwrap_or(world.now).max(world.now);
            }
            255 => world.client.release(world.now),
            length => {
                let (content, behind) = more.split_at(length.min(more.len()));
                rest = behind;
                world.receive(content);
            }
        }
        world.client.handle_timeout(world.now);
        let next = world.client.poll_timeout();
        assert!(next.is_none_or(|at| at > world.now), "still due");
        world.drain();
    }
}

impl World {
    fn receive(&mut self, content: &[u8]) {
        let mut content = content.to_vec();
        if let Some(transaction) = content.get_mut(1..4)
            && *transaction == [0; 3]
        {
            transaction.copy_from_slice(&self.transaction);
        }
        let before = self.client.delegated().cloned();
        let state = self.client.state();
        if self.client.receive(&content, self.now).is_err() {
            assert_eq!(self.client.state(), state);
            assert_eq!(self.client.delegated().cloned(), before);
        }
        let states = ["bound", "renewing", "rebinding"];
        let holds = states.contains(&self.client.state());
        assert_eq!(holds, self.client.delegated().is_some());
    }

    /// Takes what the client sends and reports.
    fn drain(&mut self) {
        let mut sent = Vec::new();
        let mut count = 0;
        while self.client.poll_transmit(self.now, &mut sent) {
            count += 1;
            check(&sent);
            self.transaction = sent[1..4].try_into().expect("checked");
            sent.clear();
        }
        assert!(count <= 1, "one message for each step");
        while let Some(event) = self.client.poll_event() {
            self.prefix = match event {
                PrefixEvent::Leased(one) => {
                    let held = self.prefix.is_none_or(|before| before == one.prefix);
                    assert!(held, "a lease that was not reported as lost");
                    assert!(one.valid_until > self.now && one.dns.len() <= 3);
                    Some(one.prefix)
                }
                PrefixEvent::Lost(one) => {
                    assert_eq!(self.prefix, Some(one));
                    None
                }
            };
        }
        let held = self.client.delegated().map(|one| one.prefix);
        assert_eq!(self.prefix, held);
    }
}

/// A message is one that a server accepts: RFC 8415, sections 16.2 to 16.9.
fn check(sent: &[u8]) {
    let message = Message::read(sent).expect("our own");
    let to_one = match message.kind {
        Kind::Request | Kind::Renew | Kind::Release => true,
        Kind::Solicit | Kind::Rebind => false,
        other => panic!("{other:?} is no message of this client"),
    };
    let options = message.options;
    assert_eq!(options.only(code::CLIENT_ID), Ok(Some(DUID)));
    let server = options.only(code::SERVER_ID).expect("once");
    assert_eq!(server.is_some(), to_one);
    assert!(server.is_none_or(|id| !id.is_empty() && id.len() <= 130));
    assert!(options.has(code::ELAPSED_TIME));
    let value = options.only(code::IA_PD).expect("once").expect("there");
    let association = Association::read(value).expect("our own");
    assert_eq!((association.iaid, association.t1_s), (IAID, 0));
    assert!(association.leases().count() <= 1);
    assert!(sent.len() < 1_200, "it fits into the smallest MTU");
}
