use super::*;

fn oid(ids: &[u32]) -> Oid {
    Oid::new(ids).unwrap()
}

fn parse(octets: &[u8]) -> Result<(Header, Pdu), ParseError> {
    let header = Header::parse(octets.first_chunk().unwrap())?;
    assert_eq!(octets.len(), HEADER_LEN + header.payload);
    Ok((header, Pdu::parse(&header, &octets[HEADER_LEN..])?))
}

/// RFC 2741, sections 5.1, 6.1 and 6.2.6, by hand: GetNext of 1.3.6.1.2.1.15.1 up to 1.3.6.1.2.1.16.
const NEXT_BIG: &[u8] = &[
    1, 6, 0x10, 0, 0, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, 32, // header
    3, 2, 1, 0, 0, 0, 0, 1, 0, 0, 0, 15, 0, 0, 0, 1, // start, included
    2, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0, 0,
];
const NEXT_LITTLE: &[u8] = &[
    1, 6, 0, 0, 9, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, 28, 0, 0, 0, // header
    3, 2, 1, 0, 1, 0, 0, 0, 15, 0, 0, 0, 1, 0, 0, 0, // start, included
    2, 2, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0,
];

#[test]
fn a_request_is_decoded_in_both_byte_orders() {
    let expected = Body::GetNext(vec![Range {
        start: oid(&[1, 3, 6, 1, 2, 1, 15, 1]),
        includes: true,
        end: oid(&[1, 3, 6, 1, 2, 1, 16]),
    }]);
    let mut big = NEXT_BIG[..48].to_vec();
    big[19] = 28;
    for octets in [&big[..], NEXT_LITTLE] {
        let (header, pdu) = parse(octets).unwrap();
        assert_eq!((pdu.session, pdu.transaction, pdu.packet), (9, 8, 7));
        assert_eq!((header.kind, pdu.context), (6, None));
        assert_eq!(pdu.body, expected);
    }
    // Four octets more are the header of an identifier whose end is missing.
    assert_eq!(parse(NEXT_BIG).unwrap_err(), ParseError::Short);
}

#[test]
fn a_response_has_the_octets_of_the_rfc() {
    let pdu = Pdu {
        session: 1,
        transaction: 2,
        packet: 3,
        context: None,
        body: Body::Response {
            uptime: 0,
            error: 0,
            index: 0,
            variables: vec![
                Variable {
                    name: oid(&[1, 3, 6, 1, 2, 1]),
                    value: Value::Octets(b"abc".to_vec()),
                },
                Variable {
                    name: oid(&[1, 3]),
                    value: Value::Counter64(0x0102_0304_0506_0708),
                },
            ],
        },
    };
    let mut octets = Vec::new();
    pdu.emit(&mut octets);
    let expected = [
        &[1, 18, 0x10, 0][..],
        &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 52],
        &[0, 0, 0, 0, 0, 0, 0, 0], // sysUpTime, error, index
        // Section 5.4: the type, then the name with prefix 2, then the string with its padding.
        &[
            0, 4, 0, 0, 1, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, b'a', b'b', b'c', 0,
        ],
        // 1.3 has no prefix.
        &[0, 70, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3],
        &[1, 2, 3, 4, 5, 6, 7, 8],
    ];
    assert_eq!(octets, expected.concat());
}

/// A variable of each type.
fn every_variable(name: &Oid) -> Vec<Variable> {
    [
        Value::Integer(-7),
        Value::Octets(b"headend".to_vec()),
        Value::Null,
        Value::ObjectId(oid(&[1, 3, 6, 1, 4, 1, 300])),
        Value::IpAddress([192, 0, 2, 1]),
        Value::Counter32(u32::MAX),
        Value::Gauge32(7),
        Value::TimeTicks(8),
        Value::Opaque(vec![1]),
        Value::Counter64(u64::MAX),
        Value::NoSuchObject,
        Value::NoSuchInstance,
        Value::EndOfMibView,
    ]
    .map(|value| Variable {
        name: name.clone(),
        value,
    })
    .into()
}

fn every_body() -> Vec<Body> {
    let name = oid(&[1, 3, 6, 1, 2, 1, 10, 95]);
    let variables = every_variable(&name);
    let ranges = vec![
        Range {
            start: name.clone(),
            includes: true,
            end: Oid::default(),
        };
        3
    ];
    let registration = Registration {
        timeout_s: 0,
        priority: 127,
        range: 2,
        subtree: name.clone(),
        upper_bound: 9,
    };
    vec![
        Body::Open {
            timeout_s: 5,
            id: name.clone(),
            description: b"x".to_vec(),
        },
        Body::Close(close::SHUTDOWN),
        Body::Register(Registration {
            timeout_s: 3,
            ..registration.clone()
        }),
        Body::Unregister(registration),
        Body::Get(ranges.clone()),
        Body::GetNext(ranges.clone()),
        Body::GetBulk {
            non_repeaters: 1,
            max_repetitions: 10,
            ranges,
        },
        Body::TestSet(variables.clone()),
        Body::CommitSet,
        Body::UndoSet,
        Body::CleanupSet,
        Body::Notify(variables.clone()),
        Body::Ping,
        Body::IndexAllocate(variables.clone()),
        Body::IndexDeallocate(variables.clone()),
        Body::AddAgentCaps(name.clone(), b"caps".to_vec()),
        Body::RemoveAgentCaps(name),
        Body::Response {
            uptime: 1,
            error: 2,
            index: 3,
            variables,
        },
    ]
}

#[test]
fn every_pdu_is_decoded_as_it_was_encoded() {
    for context in [None, Some(b"edge".to_vec())] {
        for body in every_body() {
            let pdu = Pdu {
                session: 1,
                transaction: 2,
                packet: 3,
                context: context.clone(),
                body,
            };
            let mut octets = Vec::new();
            pdu.emit(&mut octets);
            assert_eq!(parse(&octets).unwrap().1, pdu);
            // Any shorter payload is refused or is another PDU; none panics.
            let header = Header::parse(octets.first_chunk().unwrap()).unwrap();
            for end in HEADER_LEN..octets.len() {
                let _ = Pdu::parse(&header, &octets[HEADER_LEN..end]);
            }
        }
    }
}

#[test]
fn limits_are_kept() {
    let mut header = *NEXT_BIG.first_chunk::<HEADER_LEN>().unwrap();
    header[0] = 2;
    assert_eq!(Header::parse(&header), Err(ParseError::Version(2)));
    header[0] = 1;
    header[16] = 1;
    assert_eq!(
        Header::parse(&header),
        Err(ParseError::Payload((1 << 24) + 32))
    );
    header[16] = 0;
    header[19] = 33;
    assert_eq!(Header::parse(&header), Err(ParseError::Payload(33)));
    let header = |kind| Header {
        kind,
        flags: flag::NETWORK_BYTE_ORDER,
        session: 0,
        transaction: 0,
        packet: 0,
        payload: 0,
    };
    let null = [0; 8];
    assert_eq!(
        Pdu::parse(&header(5), &null.repeat(ITEMS_MAX + 1)),
        Err(ParseError::Items)
    );
    assert!(Pdu::parse(&header(5), &null.repeat(ITEMS_MAX)).is_ok());
    // 124 sub-identifiers after a prefix are 129 (section 5.1: at most 128).
    let mut long = vec![124, 2, 0, 0];
    long.extend([0; 4 * 124 + 4]);
    assert_eq!(
        Pdu::parse(&header(5), &long),
        Err(ParseError::Identifier(129))
    );
    assert_eq!(Pdu::parse(&header(19), &[]), Err(ParseError::Kind(19)));
    assert_eq!(Pdu::parse(&header(13), &null), Err(ParseError::Trailing));
}
