use super::*;

#[test]
fn tables_and_columns_are_in_order_and_within_what_is_registered() {
    let first = |table: &Table| [table.entry, &table.columns[..1]].concat();
    let names: Vec<Vec<u32>> = TABLES.iter().map(first).collect();
    assert!(names.is_sorted());
    for table in TABLES {
        assert!(table.columns.is_sorted_by(|a, b| a < b));
        let mut registered = subtrees(true);
        assert!(registered.any(|subtree| table.entry.starts_with(subtree)));
    }
}

#[test]
fn every_name_before_a_peer_finds_the_peers_sorted() {
    // A name between these tables may have a peer as its next one.
    let name = |text: &str| -> Vec<u32> { text.split('.').map(|id| id.parse().unwrap()).collect() };
    for (text, expected) in [
        ("1.3.6.1.2.1.15", true),
        ("1.3.6.1.2.1.15.2.0", true),
        ("1.3.6.1.2.1.15.3.1.1.10.0.0.1", true),
        ("1.3.6.1.2.1.15.4", false),
        ("1.3.6.1.2.1.10.95.3.1.2.1.3.100000000", true),
        ("1.3.6.1.2.1.10.95", false),
    ] {
        assert_eq!(asks_for_peers(&name(text)), expected, "{text}");
    }
}

#[test]
fn every_name_before_a_config_id_finds_the_tunnels_sorted() {
    let name = |text: &str| -> Vec<u32> { text.split('.').map(|id| id.parse().unwrap()).collect() };
    for (text, expected) in [
        ("1.3.6.1.2.1.10.95.3.1.2.1.3.100000000", false),
        ("1.3.6.1.2.1.10.131", true),
        ("1.3.6.1.2.1.10.131.1.1.1.1.11.100000000", true),
        ("1.3.6.1.2.1.10.131.1.1.2.1.5.10.0.0.1", true),
        ("1.3.6.1.2.1.10.131.1.1.3.1.8.1.4.10.0.0.1", true),
        ("1.3.6.1.2.1.10.131.1.1.4", false),
    ] {
        assert_eq!(asks_for_ids(&name(text)), expected, "{text}");
    }
}
