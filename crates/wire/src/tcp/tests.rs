use super::Options;

#[test]
fn reads_aligned_timestamps() {
    let octets = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
    let options = Options::parse(&octets);
    assert_eq!(options.timestamps, Some((7, 9)));
    assert!(!options.malformed);
}
