//! Queues, classes and filters in the kernel's lists: an object that is read is one that can be written, and what is
//! written is read as the same object.

use tc::{CodelKind, FilterKind, Found, Object, QdiscKind, Verb, decode};

/// The descriptor of a program that a filter is made with.
const PROGRAM: i32 = 5;

/// Takes a message's type, two octets in the host's order, and its body.
///
/// # Panics
/// If an object is another one after it was written.
pub fn target(data: &[u8]) {
    let Some((kind, body)) = data.split_first_chunk::<2>() else {
        return;
    };
    let kind = u16::from_ne_bytes(*kind);
    let Some(found) = decode(kind, body) else {
        return;
    };
    for verb in [Verb::Change, Verb::Delete] {
        let _ = found.object.message(verb, found.index, Some(PROGRAM));
    }
    let _ = (found.object.loss(), format!("{found:?}"));
    if let Object::Filter(filter) = &found.object {
        let _ = (filter.takes_all(), filter.leads_to(found.index));
    }
    agrees(&found);
    // As headend writes its own, without the options as they were listed.
    if let Object::Qdisc(qdisc) = &found.object
        && !matches!(qdisc.kind, QdiscKind::Other { .. })
    {
        let mut plain = qdisc.clone();
        plain.raw = None;
        agrees(&Found {
            index: found.index,
            object: Object::Qdisc(plain),
        });
    }
}

/// Writes an object and reads it again.
fn agrees(found: &Found) {
    let message = found.object.message(Verb::Add, found.index, Some(PROGRAM));
    let again = decode(message.kind, &message.body);
    let again = again.unwrap_or_else(|| panic!("{found:?} is not read again"));
    let has_raw = matches!(&found.object, Object::Qdisc(qdisc) if qdisc.raw.is_some());
    assert_eq!(
        comparable(again, has_raw),
        comparable(found.clone(), has_raw)
    );
}

/// An object without what the kernel adds, and without what reading changes each time: times that the kernel lists rounded
/// down.
fn comparable(mut found: Found, has_raw: bool) -> Found {
    match &mut found.object {
        Object::Qdisc(qdisc) => {
            let has_times = ["codel", "fq_codel"].contains(&qdisc.kind.name());
            qdisc.raw.take_if(|_| !has_raw || has_times);
            // A block of filters that it shares is not made again: see `Qdisc::shares_filters`.
            if let Some(raw) = &mut qdisc.raw {
                raw.block = None;
            }
            match &mut qdisc.kind {
                QdiscKind::FqCodel(codel) | QdiscKind::Codel(codel) => {
                    *codel = CodelKind {
                        target_us: 0,
                        interval_us: 0,
                        ..*codel
                    };
                }
                // `raw` has them without a broken end.
                QdiscKind::Other { options, .. } => *options = None,
                _ => {}
            }
        }
        Object::Filter(filter) => {
            if let FilterKind::Bpf(bpf) = &mut filter.kind {
                (bpf.tag, bpf.id) = (None, None);
            }
        }
        Object::Class(_) => {}
    }
    found
}
