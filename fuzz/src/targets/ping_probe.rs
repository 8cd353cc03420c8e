//! Datagrams to a ping experiment and to its responder: tags of echo messages and UDP probes, from any sender.

use core::cell::RefCell;

use base::{Duration, Instant};
use ping::probe::{Probe, Tag, UDP_MIN};
use ping::responder::{Refused, Responder, depart};

thread_local! {
    static RESPONDER: RefCell<(Responder, Instant)> =
        RefCell::new((Responder::new(1), Instant::ZERO));
}

/// Takes the data of an echo message, or a datagram.
///
/// # Panics
/// If a parsed probe differs from the written one, or an answer differs from its request in length or packet
/// number.
pub fn target(data: &[u8]) {
    if let Some(tag) = Tag::parse(data) {
        let size = if tag.sequence.is_some() { 16 } else { 8 };
        let mut out = Vec::new();
        Tag::emit(
            tag.nonce,
            tag.stream,
            tag.sequence.unwrap_or(0),
            size,
            &mut out,
        );
        assert_eq!(out, data[..out.len()]);
        assert_eq!(Tag::parse(&out), Some(tag));
    } else {
        assert!(data.len() < 8);
    }
    let probe = Probe::parse(data);
    if let Some(probe) = probe {
        let mut out = Vec::new();
        probe.emit(UDP_MIN, &mut out);
        assert_eq!(Probe::parse(&out), Some(probe));
    }
    RESPONDER.with_borrow_mut(|(responder, now)| answer(responder, now, data, probe));
}

fn answer(responder: &mut Responder, now: &mut Instant, data: &[u8], probe: Option<Probe>) {
    // Slow enough for each to be answered.
    *now += Duration::from_millis(1);
    let mut out = vec![7];
    let request = probe.filter(|probe| probe.reply.is_none());
    let from = [192, 0, 2, 1].into();
    match responder.answer(data, from, 5, *now, &mut out) {
        Err(refused) => assert!(refused == Refused::NotAProbe && request.is_none()),
        Ok(()) => {
            depart(&mut out, 9);
            assert_eq!(out.len(), data.len(), "nothing is amplified");
            assert_eq!(out[UDP_MIN.into()..], data[UDP_MIN.into()..]);
            let answer = Probe::parse(&out).expect("an answer is a probe");
            let stamps = answer.reply.expect("with stamps");
            assert_eq!((stamps.arrived_ns, stamps.departed_ns), (5, 9));
            assert!(stamps.count > 0);
            let reply = None;
            assert_eq!(Some(Probe { reply, ..answer }), request);
        }
    }
}
