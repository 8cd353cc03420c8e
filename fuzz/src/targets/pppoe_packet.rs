//! PPPoE packets: what can be read can be written again, and reads the same.

use wire::pppoe::{Code, Discovery, HEADER_LEN, LineInfo, Tag, Tags, Writer, parse, tag};

/// Takes the bytes after Ethernet's header and VLAN tags.
///
/// # Panics
/// If a packet differs from the bytes, or from itself once written and read.
pub fn target(data: &[u8]) {
    let Ok(packet) = parse(data) else {
        return;
    };
    let end = HEADER_LEN + packet.payload.len();
    assert_eq!(packet.payload, &data[HEADER_LEN..end]);
    if packet.code == Code::DATA {
        let mut out = wire::pppoe::header(packet.code, packet.session).to_vec();
        out.extend_from_slice(packet.payload);
        wire::pppoe::complete(&mut out, 0);
        assert_eq!(out, &data[..end]);
        return;
    }
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, packet.code, packet.session);
    let mut whole = true;
    for tag in Tags::new(packet.payload) {
        match tag {
            Ok(Tag { kind, value }) => {
                writer.tag(kind, value);
            }
            Err(_) => whole = false,
        }
    }
    writer.finish();
    // Only an End-Of-List, what follows it, and a tag that is cut are left out.
    assert!(data.starts_with(&out[..4]) && packet.payload.starts_with(&out[HEADER_LEN..]));
    let found = Discovery::parse(packet.payload);
    assert_eq!(found.is_ok(), whole);
    if let Ok(found) = found {
        check(&out, &found);
    }
}

fn check(out: &[u8], found: &Discovery<'_>) {
    let written = parse(out).expect("it was written");
    let again = Discovery::parse(written.payload).expect("its tags are whole");
    assert_eq!(again.service_name, found.service_name);
    assert_eq!(again.host_uniq, found.host_uniq);
    assert_eq!(again.fault, found.fault);
    assert_eq!(found.service_names().next(), found.service_name);
    let services = found.service_names().count();
    assert_eq!(services, usize::from(found.services));
    if let Some(line) = found.line.and_then(LineInfo::parse) {
        assert_eq!(LineInfo::parse(line.as_bytes()), Some(line.clone()));
        assert_eq!(line.radius().count(), line.avps().count());
        assert!(line.radius().count() > 0);
        let mut numbers: Vec<u8> = line.radius().map(|(number, _)| number).collect();
        numbers.sort_unstable();
        assert!(numbers.is_sorted_by(|a, b| a < b), "each number once");
        // As a tag again.
        let mut value = 3561_u32.to_be_bytes().to_vec();
        value.extend_from_slice(line.as_bytes());
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, Code::PADI, 0);
        writer.tag(tag::VENDOR_SPECIFIC, &value);
        writer.finish();
        let packet = parse(&out).expect("it was written");
        let tags = Discovery::parse(packet.payload).expect("its tag is whole");
        assert_eq!(tags.line, Some(line.as_bytes()));
    }
}
