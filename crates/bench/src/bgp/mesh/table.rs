//! Reads the kernel's table of TCP connections.

use std::collections::BTreeSet;

/// One end of a connection: local address and port, remote address and port, as the kernel writes
/// them.
pub(crate) type Endpoint = [u32; 4];

/// The ends of all established connections with one of `ports` at either end.
pub(super) fn established(table: &str, ports: &[u16]) -> BTreeSet<Endpoint> {
    let ends = table.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, remote) = (end(words.next()?)?, end(words.next()?)?);
        let is_up = words.next()? == "01";
        let is_ours = |port: u32| ports.iter().any(|&p| u32::from(p) == port);
        let [a, b] = [local.1, remote.1];
        (is_up && (is_ours(a) || is_ours(b))).then_some([local.0, a, remote.0, b])
    });
    ends.collect()
}

/// Parses `0100007F:06FE` into two numbers.
fn end(word: &str) -> Option<(u32, u32)> {
    let (address, port) = word.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    Some((number(address)?, number(port)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_each_established_connection_count_and_nothing_else() {
        let table = "  sl  local_address rem_address   st\n   \
                     0: 0100007F:06FE 00000000:0000 0A 0:0\n   \
                     1: 0100057F:06FE 0200057F:9000 01 0:0\n   \
                     2: 0200057F:9000 0100057F:06FE 01 0:0\n   \
                     3: 0300057F:9000 0100057F:06FE 02 0:0\n   \
                     4: 0300057F:9000 0100057F:0050 01 0:0\n";
        let ends = established(table, &[1790]);
        assert_eq!(ends.len(), 2);
        assert!(ends.contains(&[0x0100_057f, 1790, 0x0200_057f, 0x9000]));
        assert!(established("", &[1790]).is_empty());
    }
}
