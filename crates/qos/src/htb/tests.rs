use super::*;
use crate::fifo::{Fifo, Limit};
use crate::packet::Packet;

fn class(minor: u16, parent: Option<u16>) -> ClassOptions {
    ClassOptions {
        minor,
        parent,
        rate_bps: 1_000_000,
        ceil_bps: 1_000_000,
        burst: 3_000,
        cburst: 3_000,
        priority: 0,
        quantum: None,
    }
}

fn made(classes: Vec<ClassOptions>, leaves: &[u16], default: Option<u16>) -> Result<Htb, Error> {
    let options = Options {
        major: 1,
        mtu: 1_500,
        classes,
        default,
        direct_limit: 2,
    };
    let fifo = || Box::new(Fifo::new(Limit::Packets(10)));
    let leaves = leaves
        .iter()
        .map(|&minor| (minor, fifo() as Box<dyn Discipline>))
        .collect();
    Htb::new(&options, leaves, None, &Levels::Full, Instant::ZERO)
}

#[test]
fn what_does_not_fit_together_is_refused_and_named() {
    let two = |parent| vec![class(1, None), class(0x10, parent)];
    let error = |classes, leaves: &[u16], default| made(classes, leaves, default).err();
    assert_eq!(error(two(Some(1)), &[0x10], Some(0x10)), None);
    assert_eq!(
        error(two(Some(2)), &[0x10], None),
        Some(Error::Parent {
            class: 0x10,
            parent: 2
        })
    );
    assert_eq!(
        error(two(Some(0x10)), &[0x10], None),
        Some(Error::Depth(0x10))
    );
    assert_eq!(
        error(two(Some(1)), &[0x10], Some(1)),
        Some(Error::NoLeaf(1))
    );
    assert_eq!(
        error(two(Some(1)), &[0x10], Some(99)),
        Some(Error::NoLeaf(99))
    );
    assert_eq!(
        error(two(Some(1)), &[1, 0x10], None),
        Some(Error::NoLeaf(1))
    );
    assert_eq!(
        error(two(Some(1)), &[0x10, 0x10], None),
        Some(Error::NoLeaf(0x10))
    );
    assert_eq!(
        error(two(Some(1)), &[], None),
        Some(Error::NoDiscipline(0x10))
    );
    assert_eq!(
        error(vec![class(1, None), class(1, None)], &[1], None),
        Some(Error::Twice(1))
    );
    assert_eq!(error(vec![class(0, None)], &[0], None), Some(Error::Zero));
    let eighth = ClassOptions {
        priority: 8,
        ..class(1, None)
    };
    assert_eq!(error(vec![eighth], &[1], None), Some(Error::Priority(1)));
    let chain = |length: u16| {
        let classes = (1..=length).map(|minor| class(minor, (minor > 1).then(|| minor - 1)));
        error(classes.rev().collect(), &[length], Some(length))
    };
    assert_eq!(chain(8), None);
    assert_eq!(chain(9), Some(Error::Depth(9)));
}

#[test]
fn what_is_no_classs_passes_by_until_its_limit() {
    let mut pool = Pool::new(10);
    let mut htb = made(vec![class(1, None)], &[1], None).expect("one class");
    let mut offer = |htb: &mut Htb| {
        let id = pool.insert(Packet::default()).expect("room");
        htb.enqueue(&mut pool, id, Instant::ZERO)
    };
    assert!(offer(&mut htb) && offer(&mut htb) && !offer(&mut htb));
    assert_eq!(pool.discarded().next(), Some((0, Reason::Unclassified)));
    assert_eq!(htb.next_time(Instant::ZERO), Some(Instant::ZERO));
    assert!(htb.dequeue(&mut pool, Instant::ZERO).is_some());
    assert_eq!(
        htb.details(),
        [("direct_packets_stat", 1), ("direct_qlen", 1)]
    );
}

#[test]
fn classes_show_what_is_below_them() {
    let mut pool = Pool::new(10);
    let classes = vec![class(1, None), class(0x10, Some(1)), class(0x20, Some(1))];
    let mut htb = made(classes, &[0x10, 0x20], Some(0x20)).expect("two leaves");
    for _ in 0..4 {
        let packet = Packet {
            length: 1_500,
            ..Packet::default()
        };
        let id = pool.insert(packet).expect("room");
        htb.enqueue(&mut pool, id, Instant::ZERO);
    }
    while htb.dequeue(&mut pool, Instant::ZERO).is_some() {}
    let shown = htb.classes();
    let of = |name: &str| {
        shown
            .iter()
            .find(|class| class.name == name)
            .expect("there")
    };
    assert_eq!(of("1:1").backlog.packets, 2);
    assert_eq!(of("1:20").backlog, of("1:1").backlog);
    assert_eq!(of("1:10").backlog, Backlog::default());
    assert_eq!(of("1:1").statistics.sent_bytes, 3_000);
    assert_eq!(of("1:20").parent.as_deref(), Some("1:1"));
    assert_eq!(
        of("1:20").options,
        "prio 0 rate 1Mbit ceil 1Mbit burst 3000b cburst 3000b"
    );
    assert_eq!(of("1:1").details[3], ("ctokens", -1_500));
    assert_eq!(htb.children().len(), 2);
    assert_eq!(htb.children()[1].0, "1:20");
}

#[test]
fn the_default_burst_covers_a_millisecond_and_a_packet() {
    assert_eq!(burst_of(1_000_000_000, 1_514), 125_000 + 1_514);
    assert_eq!(burst_of(1_000, 1_514), 1_514);
    assert_eq!(burst_of(u64::MAX, u32::MAX), BURST_MAX);
}
