//! IPFIX messages: what is read lies within the message, and templates that are written again are the same.

use wire::ipfix::{Message, Writer, value};

/// Takes messages one behind the other.
///
/// # Panics
/// If a template does not survive being written, or a record has another length than its fields.
pub fn target(data: &[u8]) {
    let mut rest = data;
    let mut known = Vec::new();
    while let Ok((message, after)) = Message::parse(rest) {
        assert!(after.len() + 16 <= rest.len());
        rest = after;
        for set in message.sets() {
            let Ok(set) = set else { break };
            if set.id == wire::ipfix::TEMPLATE_SET
                && let Ok(templates) = set.templates()
            {
                let borrowed: Vec<_> = templates.iter().map(|(id, all)| (*id, &all[..])).collect();
                let mut out = Vec::new();
                let mut writer = Writer::new(&mut out, 0, 0, 0);
                writer.templates(&borrowed);
                writer.finish();
                let (again, _) = Message::parse(&out).expect("what we wrote");
                let set = again.sets().next().expect("a set").expect("a whole set");
                assert_eq!(set.templates().as_ref(), Ok(&templates));
                known.extend(templates);
                continue;
            }
            let Some((_, fields)) = known.iter().rev().find(|(id, _)| *id == set.id) else {
                continue;
            };
            let length: usize = fields.iter().map(|field| usize::from(field.length)).sum();
            for record in set.records(fields).take(100) {
                assert_eq!(record.len(), length);
                for field in fields {
                    let _ = value(fields, record, field.element);
                }
            }
        }
    }
}
