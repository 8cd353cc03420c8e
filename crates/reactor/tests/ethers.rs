//! Tests sockets for the frames of a few protocols, on a virtual wire between two namespaces.

mod common;

use std::time::Duration;

use common::privileged;
use reactor::ether::{EtherOptions, EtherRecv, EtherSend, EtherSocket};
use reactor::namespace::{Namespace, veth};
use reactor::port::PortError;

/// An EtherType for experiments, and one that nobody asked for.
const WANTED: u16 = 0x88b5;
const OTHER: u16 = 0x88b6;

fn pair() -> (Namespace, Namespace) {
    let (a, b) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    veth((&a, "a0"), (&b, "b0")).unwrap();
    for (namespace, name) in [(&a, "a0"), (&b, "b0")] {
        namespace.netlink().unwrap().set_up(name, true).unwrap();
    }
    for (namespace, name) in [(&a, "a0"), (&b, "b0")] {
        let mut netlink = namespace.netlink().unwrap();
        netlink
            .wait_until_running(name, base::Duration::from_secs(10))
            .unwrap();
    }
    (a, b)
}

fn open(namespace: &Namespace, name: &str) -> Result<EtherSocket, PortError> {
    let options = EtherOptions {
        types: vec![WANTED],
        recv_buffer_bytes: Some(4 << 20),
        ..EtherOptions::default()
    };
    let opened = namespace.run(|| {
        let mut socket = EtherSocket::open(name, &options)?;
        socket.bind().map(|()| socket)
    });
    opened.unwrap()
}

fn push(batch: &mut EtherSend, to: [u8; 6], tags: &[u16], kind: u16, payload: &[u8]) {
    let out = batch.begin();
    out.extend(to);
    out.extend([2, 0, 0, 0, 0, 1]);
    for tag in tags {
        out.extend([0x81, 0x00]);
        out.extend(tag.to_be_bytes());
    }
    out.extend(kind.to_be_bytes());
    out.extend(payload);
    batch.commit();
}

#[test]
fn wanted_frames_arrive_with_their_tags_and_no_others() {
    privileged(
        "wanted_frames_arrive_with_their_tags_and_no_others",
        pass_frames,
    );
}

fn pass_frames() {
    let (a, b) = pair();
    let (mut from, mut to) = (open(&a, "a0").unwrap(), open(&b, "b0").unwrap());
    let ours = to.mac();
    let mut batch = EtherSend::new(64);
    push(&mut batch, ours, &[], OTHER, b"of another protocol");
    push(
        &mut batch,
        [2, 9, 9, 9, 9, 9],
        &[],
        WANTED,
        b"to another host",
    );
    push(&mut batch, ours, &[], WANTED, b"plain");
    push(&mut batch, [0xff; 6], &[7], WANTED, b"one tag");
    push(&mut batch, ours, &[100, 200], WANTED, b"two tags");
    push(
        &mut batch,
        ours,
        &[100, 200],
        OTHER,
        b"two tags and another protocol",
    );
    assert_eq!(from.send(&mut batch).sent, 6);
    assert!(batch.is_empty());
    let mut received = EtherRecv::new(8);
    let mut frames = Vec::new();
    for _ in 0..2_000 {
        to.receive(&mut received).unwrap();
        frames.extend(
            received
                .iter()
                .map(|frame| (frame.tag, frame.bytes.to_vec())),
        );
        if frames.len() >= 3 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let summary: Vec<_> = frames
        .iter()
        .map(|(tag, bytes)| (*tag, String::from_utf8_lossy(&bytes[14..]).into_owned()))
        .collect();
    let tag = |number: u8| Some([0x81, 0, 0, number]);
    assert_eq!(summary[0], (None, "plain".to_owned()));
    assert_eq!(summary[1], (tag(7), "one tag".to_owned()));
    assert_eq!(summary[2].0, tag(100));
    assert!(summary[2].1.ends_with("two tags"), "{summary:?}");
    assert_eq!(summary.len(), 3);
    assert_eq!(to.look().received, 3);
    assert_eq!(to.look().missed, 0);
}

#[test]
fn a_lost_interface_is_reported_by_its_name() {
    privileged("a_lost_interface_is_reported_by_its_name", lose_interface);
}

fn lose_interface() {
    let (a, b) = pair();
    let mut socket = open(&b, "b0").unwrap();
    assert!(b.run(|| socket.check().is_ok()).unwrap());
    a.netlink().unwrap().delete("a0").unwrap();
    let mut received = EtherRecv::new(1);
    let error = (0..2_000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(1));
        b.run(|| socket.receive(&mut received).err()).unwrap()
    });
    let error = error.expect("the kernel reports that the interface is gone");
    assert!(
        matches!(error, PortError::Down(_) | PortError::Gone(_)),
        "{error}"
    );
    assert!(b.run(|| socket.check().is_err()).unwrap());
    // The same socket serves an interface that is made again.
    assert!(b.run(|| socket.bind().is_err()).unwrap());
    veth((&a, "a0"), (&b, "b0")).unwrap();
    for (namespace, name) in [(&a, "a0"), (&b, "b0")] {
        namespace.netlink().unwrap().set_up(name, true).unwrap();
    }
    b.run(|| socket.bind()).unwrap().unwrap();
    let mut from = open(&a, "a0").unwrap();
    let mut batch = EtherSend::new(1);
    let arrived = (0..2_000).any(|_| {
        push(&mut batch, [0xff; 6], &[], WANTED, b"again");
        from.send(&mut batch);
        std::thread::sleep(Duration::from_millis(1));
        b.run(|| socket.receive(&mut received)).unwrap().unwrap() > 0
    });
    assert!(arrived);
    a.netlink().unwrap().delete("a0").unwrap();
    assert!(matches!(open(&b, "b0"), Err(PortError::Unknown(name)) if name == "b0"));
    assert!(matches!(open(&b, "lo"), Err(PortError::NotEthernet(name)) if name == "lo"));
}
