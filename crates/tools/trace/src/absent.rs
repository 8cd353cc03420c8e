//! Numbers of connections and UDP flows that the command line names and that the capture does not have.

use std::fmt::Write as _;

use trace::Summary;

use super::hi::HiArgs;
use super::values::Numbers;

/// Ranges that a message lists.
const LISTED_MAX: usize = 5;

/// Reports numbers of `-o` and `--oUDP` beyond the last connection or flow. Returns whether there are any.
///
/// A range that begins at a number that exists may end beyond the last one: `-o10-99` means from 10 on.
pub(super) fn report(args: &HiArgs, summary: &Summary) -> bool {
    let low = &args.low;
    let mut lists = vec![("-o", "TCP connection", &low.only, summary.connections)];
    if low.udp {
        lists.push(("--oUDP", "UDP flow", &low.only_udp, summary.flows));
    }
    let messages = lists
        .into_iter()
        .filter_map(|(flag, what, numbers, last)| message(flag, what, numbers, last));
    messages
        .inspect(|message| eprintln!("headend: {message}"))
        .count()
        > 0
}

fn message(flag: &str, what: &str, numbers: &Numbers, last: u64) -> Option<String> {
    let absent: Vec<_> = numbers
        .ranges()
        .filter(|range| *range.start() > last)
        .collect();
    if absent.is_empty() {
        return None;
    }
    let mut list = String::new();
    for range in absent.iter().take(LISTED_MAX) {
        let comma = if list.is_empty() { "" } else { "," };
        // Formatting into a String cannot fail.
        let _ = match (range.start(), range.end()) {
            (first, end) if first == end => write!(list, "{comma}{first}"),
            (first, end) => write!(list, "{comma}{first}-{end}"),
        };
    }
    if absent.len() > LISTED_MAX {
        list.push_str(",...");
    }
    Some(match last {
        0 => format!("{flag}{list}: the capture has no {what}"),
        1 => format!("{flag}{list}: there is no such {what}; the only one has number 1"),
        last => format!("{flag}{list}: there is no such {what}; their numbers are 1 to {last}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::numbers_or_file;

    #[test]
    fn only_numbers_beyond_the_last_connection_are_reported() {
        let text = |list, last| {
            message(
                "-o",
                "TCP connection",
                &numbers_or_file(list).unwrap(),
                last,
            )
        };
        assert_eq!(text("1,3-99", 3), None);
        assert_eq!(
            text("2,7-9,99", 3).unwrap(),
            "-o7-9,99: there is no such TCP connection; their numbers are 1 to 3"
        );
        assert_eq!(
            text("2", 0).unwrap(),
            "-o2: the capture has no TCP connection"
        );
        assert_eq!(
            text("1,2,3,4,5,6,7,8", 1).unwrap(),
            "-o2,3,4,5,6,...: there is no such TCP connection; the only one has number 1"
        );
    }
}
