use super::*;
use trace::text::Numeric;

/// The filter as it is printed.
fn printed(text: &str) -> String {
    match Filter::parse(text) {
        Ok(filter) => filter.to_string(),
        Err(wrong) => panic!("{wrong}"),
    }
}

fn passes(text: &str, connection: &Connection) -> bool {
    let filter = Filter::parse(text).unwrap_or_else(|wrong| panic!("{wrong}"));
    filter.passes(Subject {
        connection,
        names: &Numeric,
        end: 0,
    })
}

fn connection() -> Connection {
    let mut connection = Connection::default();
    (connection.a.packets, connection.b.packets) = (10, 20);
    (connection.a.mss, connection.b.mss) = (1460, 536);
    connection.b.asked_timestamps = true;
    connection
}

/// What tcptrace 6.6.7 prints as "Output filter".
#[test]
fn filters_are_understood_as_tcptrace_does() {
    for (text, read) in [
        (
            "c_segs>10 and c_segs>3 or s_segs>20 and not mss > 3",
            "(((c_segs>10)AND((c_segs>3)OR(s_segs>20)))AND NOT(((c_mss> SIGNED(3))OR(s_mss> SIGNED(3)))))",
        ),
        (
            "segs+packets>10 and not f1323_ts",
            "(((((((s_segs+s_packets)>10)OR((s_segs+c_packets)>10))OR((c_segs+s_packets)>10))OR((c_segs+c_packets)>10))AND NOT(s_f1323_ts))OR((((((s_segs+s_packets)>10)OR((s_segs+c_packets)>10))OR((c_segs+s_packets)>10))OR((c_segs+c_packets)>10))AND NOT(c_f1323_ts)))",
        ),
        (
            "b_segs+packets>10",
            "(((((s_segs+s_packets)>10)AND((s_segs+c_packets)>10))AND((c_segs+s_packets)>10))AND((c_segs+c_packets)>10))",
        ),
        ("c_segs=1 -o s_segs!=2", "((c_segs==1)OR(s_segs!=2))"),
        (
            "c_segs=1 -a ! s_segs<2 || c_port>=3",
            "((c_segs==1)AND NOT(((s_segs<2)OR(c_port>=3))))",
        ),
        ("c_segs+2*3-1>4", "(((c_segs+(2*3))-1)>4)"),
        ("c_segs&3|4==7", "(((c_segs&3)|4)==7)"),
    ] {
        assert_eq!(printed(text), read, "{text}");
    }
}

#[test]
fn variables_are_of_the_end_that_is_asked_for() {
    let connection = connection();
    for (text, expected) in [
        ("c_segs==10", true),
        ("s_segs==10", false),
        ("segs==10", true),
        ("e_segs==20", true),
        ("b_segs>=10", true),
        ("b_segs>10", false),
        ("C_SEGS=10", true),
        ("f1323_ts", true),
        ("b_f1323_ts", false),
        ("c_f1323_ts", false),
        ("s_f1323_ts = TRUE", true),
        ("not s_f1323_ts", false),
    ] {
        assert_eq!(passes(text, &connection), expected, "{text}");
    }
}

#[test]
fn numbers_do_not_wrap_and_nothing_is_divided_by_zero() {
    let connection = connection();
    assert!(passes("c_segs-s_segs<0", &connection));
    assert!(passes("c_segs -15 < -4", &connection));
    assert!(!passes("c_segs/(c_segs-10)>0", &connection));
    assert!(!passes("c_segs%0=0", &connection));
    assert!(passes(
        "c_segs*18446744073709551615*18446744073709551615>0",
        &connection
    ));
}

#[test]
fn addresses_are_compared_within_their_family() {
    use trace::FlowKey;
    let v4 = |last: u8| {
        let mut octets = [0; 16];
        octets[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, last]);
        octets
    };
    let mut connection = connection();
    connection.key = FlowKey::new(&v4(1), 1000, &v4(2), 80, 0).0;
    connection.a_is_low = true;
    assert!(passes("c_hostaddr=10.0.0.1 and s_port=80", &connection));
    assert!(passes("s_hostaddr>10.0.0.1", &connection));
    assert!(!passes("hostaddr!=2001:db8::1", &connection));
    assert!(passes("c_hostname=\"10.0.0.1\"", &connection));
}

#[test]
fn errors_point_at_their_column() {
    for (text, column, why) in [
        ("c_segs>segz", 8, "no variable is called 'segz'"),
        ("c_segs>", 8, "something is missing"),
        ("segs", 1, "this is a value"),
        ("(c_segs>1", 10, "')' is missing"),
        ("c_segs>1)", 9, "has no '('"),
        ("c_segs > 1 c_segs", 12, "an operator"),
        ("c_segs > ? ", 10, "'?' means nothing"),
        ("c_segs>1 and mss", 14, "AND and OR"),
        (
            "c_hostaddr=5",
            11,
            "an address cannot be compared with a number",
        ),
        ("c_hostname+1>2", 1, "no number"),
        ("not c_segs", 5, "NOT takes"),
        ("c_hostname=\"x", 12, "no end"),
        ("c_segs>99999999999999999999", 8, "too large"),
        ("é>1", 1, "means nothing"),
        ("", 1, "something is missing"),
        (
            "segs+segs+segs+segs+segs+segs+segs+segs+segs+segs+segs+segs+segs>1",
            60,
            "too many",
        ),
    ] {
        let wrong = Filter::parse(text).unwrap_err();
        let said = wrong.to_string();
        assert!(said.contains(why), "{text}: {said}");
        assert!(
            said.contains(&format!("column {column}:")),
            "{text}: {said}"
        );
        let arrow = said.lines().last().unwrap();
        assert_eq!(arrow.chars().count(), column + 2, "{said}");
    }
}

#[test]
fn what_is_nested_too_deep_is_refused() {
    let deep = format!("{}c_segs>1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(Filter::parse(&deep).unwrap_err().why.contains("too deep"));
    let nots = format!("{}c_f1323_ts", "!".repeat(5000));
    assert!(Filter::parse(&nots).unwrap_err().why.contains("too deep"));
    assert!(passes(
        &format!("{}s_f1323_ts", "!".repeat(100)),
        &connection()
    ));
}

#[test]
fn variables_have_different_names() {
    for (at, variable) in VARIABLES.iter().enumerate() {
        assert!(
            VARIABLES[at + 1..]
                .iter()
                .all(|other| other.name != variable.name)
        );
    }
}
