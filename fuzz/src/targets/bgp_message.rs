//! BGP messages: read, written, read again.
//!
//! An input is an octet that chooses the session's options, an octet that chooses the `What`, and the content.

use wire::bgp::{
    EXTENDED_MAX, Families, FamilyId, HEADER_LEN, Kind, MESSAGE_MAX, Nlri, Notification, Open,
    PeerKind, RouteRefresh, Update, UpdateContext, UpdateWriter, Verdict, attr, frame,
    to_two_octet,
};

/// The kind of content after the first two octets.
enum What {
    /// Messages, as on a connection.
    Stream,
    /// The bytes after the header of a message of that type.
    Body(Kind),
    /// Attributes of a route in a table dump.
    Table(FamilyId),
}

impl What {
    fn of(octet: u8) -> Self {
        match octet & 7 {
            kind @ 1..=5 => What::Body(Kind::from_number(kind).expect("1 to 5")),
            6 => What::Table(FamilyId::Ipv4Unicast),
            7 => What::Table(FamilyId::Ipv6Unicast),
            _ => What::Stream,
        }
    }
}

fn context(octet: u8) -> UpdateContext {
    UpdateContext {
        four_octet: octet & 1 == 0,
        peer: match octet >> 1 & 3 {
            0 | 3 => PeerKind::External,
            1 => PeerKind::Internal,
            _ => PeerKind::Confederation,
        },
        add_path: [octet & 8 != 0, octet & 16 != 0],
        families: if octet & 32 == 0 {
            Families::ALL
        } else {
            Families::IPV4
        },
        first_as: (octet & 64 != 0).then_some(64_496),
    }
}

/// No bytes cause a panic; a message that was read and written again reads the same in every part.
///
/// # Panics
/// If that does not hold.
pub fn target(input: &[u8]) {
    let [how, what, rest @ ..] = input else {
        return;
    };
    let context = context(*how);
    match What::of(*what) {
        What::Body(kind) => body(kind, rest, &context),
        What::Table(family) => {
            if let Ok(update) = Update::read_table_entry(rest, family, &context) {
                assert!(update.announced().is_empty() && update.withdrawn().is_empty());
                narrowed(&update, &context);
            }
        }
        What::Stream => {
            let mut rest = rest;
            while let Ok(Some((kind, octets, len))) = frame(rest, EXTENDED_MAX) {
                assert_eq!(octets.len() + HEADER_LEN, len);
                body(kind, octets, &context);
                rest = &rest[len..];
            }
        }
    }
}

fn body(kind: Kind, octets: &[u8], context: &UpdateContext) {
    let mut out = Vec::new();
    match kind {
        Kind::Keepalive => {}
        Kind::Open => {
            if let Ok(open) = Open::read(octets)
                && open.emit(&mut out).is_ok()
            {
                assert_eq!(Open::read(&out[HEADER_LEN..]), Ok(open));
            }
        }
        Kind::Notification => {
            if let Ok(notification) = Notification::read(octets) {
                let _ = notification.to_string();
                notification.emit(&mut out);
                assert_eq!(Notification::read(&out[HEADER_LEN..]), Ok(notification));
            }
        }
        Kind::RouteRefresh => {
            if let Ok(refresh) = RouteRefresh::read(octets) {
                refresh.emit(&mut out);
                assert_eq!(RouteRefresh::read(&out[HEADER_LEN..]), Ok(refresh));
            }
        }
        Kind::Update => {
            if let Ok(update) = Update::read(octets, context) {
                check(&update, context);
            }
        }
    }
}

fn check(update: &Update<'_>, context: &UpdateContext) {
    for fault in update.faults() {
        let _ = (fault.to_string(), fault.notification());
    }
    if update.verdict() == Verdict::TreatAsWithdraw {
        assert!(update.announced().is_empty() && !update.faults().is_empty());
        return;
    }
    let context = UpdateContext {
        four_octet: true,
        first_as: None,
        ..*context
    };
    let writer = UpdateWriter {
        message_max: EXTENDED_MAX,
        add_path: context.add_path,
    };
    for family in FamilyId::ALL {
        let of_family = |nlri: &Nlri| nlri.prefix.family() == family;
        let announced: Vec<Nlri> = update.announced().filter(of_family).collect();
        let withdrawn: Vec<Nlri> = update.withdrawn().filter(of_family).collect();
        let mut out = Vec::new();
        if !announced.is_empty() {
            let next_hop = update.next_hop(family).expect("routes have a next hop");
            let routes = announced.iter().copied();
            let messages = writer.announce(update.attributes(), next_hop, routes, &mut out);
            assert_eq!(messages, Ok(1));
            let read = read_again(&out, &context);
            assert!(read.announced().eq(announced));
            assert_eq!(read.next_hop(family), Some(next_hop));
            assert!(others(read.attributes()).eq(others(update.attributes())));
        }
        out.clear();
        if writer.withdraw(family, withdrawn.iter().copied(), &mut out) > 0 {
            assert!(read_again(&out, &context).withdrawn().eq(withdrawn));
        }
    }
    narrowed(update, &context);
}

/// The attributes unrelated to next hops.
fn others(attributes: &[u8]) -> impl Iterator<Item = attr::Attribute<'_>> {
    attr::iter(attributes).filter(|attribute| attribute.code != attr::code::NEXT_HOP)
}

fn read_again<'a>(message: &'a [u8], context: &UpdateContext) -> Update<'a> {
    let (kind, body, len) = frame(message, EXTENDED_MAX)
        .expect("a header of ours")
        .expect("whole");
    assert_eq!((kind, len), (Kind::Update, message.len()));
    let update = Update::read(body, context).expect("a message of ours");
    assert_eq!(update.faults(), []);
    update
}

/// A path keeps its length when it passes a peer with two-octet AS numbers.
fn narrowed(update: &Update<'_>, context: &UpdateContext) {
    if update.verdict() == Verdict::TreatAsWithdraw || update.attributes().len() > MESSAGE_MAX {
        return;
    }
    let mut narrow = Vec::new();
    to_two_octet(update.attributes(), &mut narrow);
    let context = UpdateContext {
        four_octet: false,
        first_as: None,
        ..*context
    };
    // In a table dump, every mandatory attribute of an IPv4 route must be present except its next hop.
    let Ok(again) = Update::read_table_entry(&narrow, FamilyId::Ipv4Unicast, &context) else {
        panic!("attributes of ours");
    };
    if again.verdict() == Verdict::Accept {
        let length = |update: &Update<'_>| attr::as_path(update.attributes()).length();
        assert_eq!(length(&again), length(update));
    }
}
