//! Goal: the same changes give the same namespace, whether applied by operations, from a description, or twice. Method:
//! a made-up tree.

use std::collections::BTreeMap;

use super::*;
use crate::format::change::{GroupLayout, ZoneOf};

fn attributes(mode: u32, links: u32, parent: Inode) -> Attributes {
    Attributes { mode, links, parent, ..Attributes::default() }
}

fn tree() -> (Namespace, Vec<Change>) {
    let mut namespace = Namespace::new(7);
    let name = |text: &str| text.as_bytes().into();
    let mut changes = vec![
        Change::Node { inode: ROOT, attributes: attributes(0o040_755, 3, ROOT) },
        Change::Node { inode: 2, attributes: attributes(0o040_755, 2, ROOT) },
        Change::Node { inode: 5, attributes: attributes(0o100_644, 2, 0) },
    ];
    changes.iter().for_each(|change| namespace.apply(change));
    for (directory, text, inode) in [(ROOT, "d", 2), (ROOT, "f", 5), (2, "g", 5)] {
        let cookie = namespace.new_cookie(directory, text.as_bytes()).unwrap();
        let change = Change::Entry { directory, cookie, inode, name: name(text) };
        namespace.apply(&change);
        changes.push(change);
    }
    let more = [
        Change::Generations { below: 77 },
        Change::Extents { inode: 5, extents: vec![Extent { at: 0, blocks: 4, start: 9 }] },
        Change::Attribute { inode: 5, name: name("user.a"), value: name("b") },
    ];
    more.iter().for_each(|change| namespace.apply(change));
    changes.extend(more);
    (namespace, changes)
}

fn described(namespace: &Namespace) -> Vec<Change> {
    let mut changes = namespace.describe_rest();
    let inodes: Vec<Inode> = namespace.nodes_from(0).map(|(inode, _)| inode).collect();
    inodes.iter().for_each(|inode| namespace.describe(*inode, &mut changes));
    for inode in inodes {
        assert_eq!(namespace.describe_names(inode, 0, 100, &mut changes), None);
    }
    changes
}

#[test]
fn what_is_described_is_made_anew() {
    let (namespace, changes) = tree();
    assert_eq!(namespace.self_check(), Vec::<String>::new());
    let mut copy = Namespace::new(7);
    described(&namespace).iter().for_each(|change| copy.apply(change));
    // Changes that are applied a second time have no effect.
    changes.iter().for_each(|change| copy.apply(change));
    assert_eq!(described(&copy), described(&namespace));
    assert_eq!(copy.self_check(), Vec::<String>::new());
    assert_eq!(copy.generations_below(), 77);
    assert_eq!(copy.lookup(2, b"g").unwrap().unwrap().1, 5);
    copy.begin_numbers();
    assert_eq!(copy.next_number().unwrap(), (3, 77), "numbers below the largest are used again");
}

#[test]
fn what_is_wrong_is_named() {
    let (mut namespace, _) = tree();
    namespace.apply(&Change::DropNode { inode: 5 });
    let wrong = namespace.self_check().join("; ");
    assert!(wrong.contains("'f' in directory 1") && wrong.contains("refers to a missing file: 5"), "{wrong}");
    let (mut namespace, _) = tree();
    namespace.apply(&Change::Node { inode: 5, attributes: attributes(0o100_644, 3, 0) });
    assert_eq!(namespace.self_check(), ["file 5 counts 3 links, and has 2"]);
}

#[test]
fn names_of_one_hash_are_told_apart_also_when_the_first_is_gone() {
    let mut directory = Directory::default();
    let key = (1, 2);
    let first = directory.new_cookie(key, b"a").unwrap();
    // As if another name had an equal hash and came before.
    directory.insert(first, Entry { name: b"other".as_slice().into(), inode: 3 });
    let second = directory.new_cookie(key, b"a").unwrap();
    assert_eq!(second, first + 1);
    directory.insert(second, Entry { name: b"a".as_slice().into(), inode: 4 });
    assert_eq!(directory.lookup(key, b"a"), Some((second, 4)));
    directory.remove(first);
    assert_eq!(directory.lookup(key, b"a"), Some((second, 4)));
}

/// Compares extents with a map of each block.
#[test]
fn pieces_are_put_in_the_place_of_others() {
    let mut random = crate::load::random::Choices::new(11);
    let map_of = |extents: &[Extent]| -> BTreeMap<u32, u64> {
        let blocks =
            extents.iter().flat_map(|it| (0..it.blocks).map(|block| (it.at + block, it.start + u64::from(block))));
        blocks.collect()
    };
    let mut extents = Extents::None;
    let mut longest = 0;
    for round in 0..4000u64 {
        let (from, length) = (random.below(90) as u32, 1 + random.below(8) as u32);
        let to = from + length;
        let mut pieces = Vec::new();
        let mut at = from;
        while at < to && random.below(4) > 0 {
            let blocks = 1 + random.below(u64::from(to - at)) as u32;
            pieces.push(Extent { at, blocks, start: 1000 * (round + 1) + u64::from(at) });
            at += blocks + random.below(2) as u32;
        }
        let mut expected = map_of(extents.as_slice());
        expected.retain(|at, _| !(from..to).contains(at));
        expected.extend(map_of(&pieces));
        extents.put(from, to, &pieces);
        assert_eq!(map_of(extents.as_slice()), expected, "round {round}: {from} to {to}, {pieces:?}");
        assert!(extents.as_slice().windows(2).all(|pair| pair[0].end() <= u64::from(pair[1].at)), "in order");
        assert_eq!(extents, Extents::from(extents.as_slice()), "few pieces are kept as few");
        for piece in extents.as_slice() {
            assert_eq!(extents.beginning_at(piece.at), Some(piece));
        }
        longest = longest.max(extents.as_slice().len());
    }
    assert!(longest > 20, "{longest} pieces at most");
}

#[test]
fn rows_are_known_of_groups_that_are_there_and_lie_where_they_did() {
    let layout = |sequence, zone| GroupLayout { sequence, width: 1, members: vec![ZoneOf { drive: 0, zone }] };
    let group = |group, zone| Change::Group { group, layout: layout(5, zone) };
    let rows = |groups: &[(u32, u32)]| Change::Rows { groups: groups.to_vec() };
    let mut namespace = Namespace::new(1);
    let known = |namespace: &Namespace| namespace.groups().rows().clone().into_iter().collect::<Vec<_>>();
    let all = [group(1, 1), group(2, 2), group(3, 3), rows(&[(1, 7), (2, 8), (3, 9), (4, 1)])];
    all.iter().for_each(|change| namespace.apply(change));
    assert_eq!(known(&namespace), [(1, 7), (2, 8), (3, 9)]);
    let mut again = Namespace::new(1);
    namespace.groups().describe().iter().for_each(|change| again.apply(change));
    assert_eq!(known(&again), known(&namespace), "a checkpoint tells them");
    [group(2, 9), Change::DropGroup { group: 3 }].iter().for_each(|change| namespace.apply(change));
    assert_eq!(known(&namespace), [(1, 7)], "one moved, one gone");
    namespace.apply(&rows(&[]));
    assert_eq!(known(&namespace), []);
}
