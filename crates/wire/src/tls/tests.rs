use super::*;
use proptest::prelude::*;

/// A ClientHello without its record, from RFC 8448 section 3 ("server" as name, TLS 1.3).
fn rfc_8448() -> Vec<u8> {
    let hex = "010000c00303cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece7000006130113031302010000\
               91000000 0b0009000006736572766572ff01000100000a00140012001d0017001800190100010101020103010400230000003300\
               26002400 1d002099381de560e4bd43d23d8e435a7dbafeb3c06e51c13cae4d5413691e529aaf2c002b0003020304000d002000\
               1e040305 03060302030804080508060401050106010201040205020602020 2002d00020101001c00024001";
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let value = |digit: u8| (digit as char).to_digit(16).unwrap() as u8;
    digits
        .chunks(2)
        .map(|pair| value(pair[0]) << 4 | value(pair[1]))
        .collect()
}

fn records(message: &[u8], size: usize) -> Vec<u8> {
    let mut stream = Vec::new();
    for part in message.chunks(size) {
        stream.extend([22, 3, 1]);
        stream.extend((part.len() as u16).to_be_bytes());
        stream.extend(part);
    }
    stream
}

#[test]
fn the_hello_of_rfc_8448_names_its_server_and_version() {
    let message = rfc_8448();
    assert_eq!(message.len(), 196);
    let hello = hello(&message).unwrap();
    assert_eq!(hello.server_name, Some("server"));
    assert_eq!((hello.version, hello.from_server), (0x0304, false));
    assert_eq!(hello.protocols().count(), 0);
}

#[test]
fn the_server_hello_of_rfc_8448_chooses_a_version() {
    let mut message = vec![2, 0, 0, 86, 3, 3];
    message.extend([0xa6; 32]);
    message.extend([0, 0x13, 0x01, 0, 0, 46, 0, 0x33, 0, 0x24, 0, 0x1d, 0, 0x20]);
    message.extend([0xc9; 32]);
    message.extend([0, 0x2b, 0, 2, 3, 4]);
    let hello = hello(&message).unwrap();
    assert_eq!((hello.version, hello.from_server), (0x0304, true));
}

#[test]
fn offered_protocols_are_listed() {
    let mut message = vec![1, 0, 0, 0, 3, 3];
    message.extend([0; 32]);
    message.extend([0, 0, 2, 0x13, 1, 1, 0]);
    message.extend([0, 18, 0, 16, 0, 14, 0, 12, 2, b'h', b'2', 8]);
    message.extend(b"http/1.1");
    message[3] = (message.len() - 4) as u8;
    let hello = hello(&message).unwrap();
    let protocols: Vec<&[u8]> = hello.protocols().collect();
    assert_eq!(protocols, [&b"h2"[..], b"http/1.1"]);
    assert_eq!((hello.version, hello.server_name), (0x0303, None));
}

#[test]
fn a_hello_in_records_of_any_size_reads_as_the_whole_and_a_prefix_is_incomplete() {
    let message = rfc_8448();
    let mut scratch = Vec::new();
    for size in 1..message.len() + 1 {
        let stream = records(&message, size);
        let whole = hello_in_records(&stream, &mut scratch).unwrap();
        assert_eq!(whole.server_name, Some("server"), "{size}");
        for end in 0..stream.len() {
            let cut = hello_in_records(&stream[..end], &mut scratch);
            assert_eq!(cut, Err(NoHello::Incomplete), "{size} {end}");
        }
    }
}

#[test]
fn other_streams_and_hellos_that_are_too_long_are_refused() {
    let mut scratch = Vec::new();
    for stream in [
        &b"GET / HTTP/1.1"[..],
        &[22, 3, 1, 0xff, 0xff],
        &[22, 2],
        &[22, 3, 1, 0, 4, 3, 0, 0, 0],
        &[22, 3, 1, 0, 4, 1, 1, 0, 0],
    ] {
        let read = hello_in_records(stream, &mut scratch);
        assert_eq!(read, Err(NoHello::Other), "{stream:?}");
    }
    let endless = records(&[1, 0, 0x3f, 0xff], 1).repeat(5000);
    assert_eq!(
        hello_in_records(&endless, &mut scratch),
        Err(NoHello::Other)
    );
}

proptest! {
    #[test]
    fn no_octets_cause_a_panic(mut octets in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..200, of_rfc: bool) {
        if of_rfc {
            let mut message = rfc_8448();
            let at = at.min(message.len() - 1);
            message.splice(at..at + 1, octets.iter().copied().take(5));
            octets = records(&message, 100);
        }
        let mut scratch = Vec::new();
        if let Ok(hello) = hello_in_records(&octets, &mut scratch) {
            hello.protocols().for_each(drop);
        }
    }
}
