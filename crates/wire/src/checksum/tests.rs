use super::sum;

/// The example of RFC 1071 section 3.
#[test]
fn sums_as_the_rfc_does() {
    let octets = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(sum(&octets), 0xddf2);
}
