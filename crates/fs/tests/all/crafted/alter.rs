//! Alterations of a store: changed numbers; changes omitted, doubled, exchanged or taken from elsewhere; exchanged
//! pieces. One generator makes every choice, so a seed is one crafted store.

use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::device::model::Contents;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::fields::{self, Field};
use super::pieces::{self, HEAD_BYTES, Kind, Piece};

/// Most alterations of a store.
const ALTERATIONS_MAX: u64 = 4;

/// Random generator for all choices.
pub(crate) struct Chooser(Xoshiro256PlusPlus);

impl Chooser {
    /// Returns a generator with this seed.
    pub(crate) fn new(seed: u64) -> Chooser {
        Chooser(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a random number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len() as u64) as usize)
    }

    /// Returns true once in `times` calls on average.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// Alters `contents`; returns a description of each alteration.
pub(crate) fn craft(contents: &mut [Contents], chooser: &mut Chooser) -> Vec<String> {
    let mut done = Vec::new();
    for _ in 0..1 + chooser.below(ALTERATIONS_MAX) {
        let pieces = pieces::of(contents);
        let kinds: Vec<Vec<usize>> = pieces::by_kind(&pieces).into_values().collect();
        let Some(&at) = chooser.of(&kinds).cloned().as_ref().and_then(|kind| chooser.of(kind)) else { break };
        let altered = match chooser.below(10) {
            0 => exchange(&pieces, at, chooser),
            1..=3 => alter_items(&pieces, at, chooser),
            _ => None,
        };
        let (words, altered) = altered.unwrap_or_else(|| alter_numbers(&pieces, at, chooser));
        altered.into_iter().for_each(|mut piece| piece.put(contents));
        done.push(words);
    }
    done
}

fn words(piece: &Piece, done: &str) -> String {
    format!("{:?} at block {} of device {}: {done}", piece.kind, piece.blocks[0], piece.device)
}

/// Changes some numbers of a piece, and usually the same numbers in its copies.
fn alter_numbers(pieces: &[Piece], at: usize, chooser: &mut Chooser) -> (String, Vec<Piece>) {
    let parsed = fields::of(&pieces[at]);
    let is_single = chooser.once_in(5);
    let is_meant = |(index, other): &(usize, &Piece)| {
        *index == at || (!is_single && other.kind == pieces[at].kind && other.same == pieces[at].same)
    };
    let mut altered: Vec<Piece> = pieces.iter().enumerate().filter(is_meant).map(|(_, piece)| piece.clone()).collect();
    let mut done = Vec::new();
    for _ in 0..1 + chooser.below(2) {
        let Some(&field) = chooser.of(&parsed.fields) else { continue };
        let before = field.get(&pieces[at].bytes);
        let value = value_for(field, before, pieces, chooser);
        done.push(format!("{} bytes at {} from {before} to {value}", field.width, field.at));
        for piece in altered.iter_mut().filter(|piece| piece.bytes.len() >= field.at + field.width) {
            field.set(&mut piece.bytes, value);
        }
    }
    (words(&pieces[at], &done.join(", ")), altered)
}

/// Returns a number to replace `before`: one near it, one at a bound, another number of the store, or any.
fn value_for(field: Field, before: u64, pieces: &[Piece], chooser: &mut Chooser) -> u64 {
    let most = u64::MAX >> (64 - 8 * field.width as u32);
    let value = match chooser.below(12) {
        0 => before.wrapping_add(1),
        1 => before.wrapping_sub(1),
        2 => before.wrapping_mul(2),
        3 => before / 2,
        4 => before ^ 1 << chooser.below(8 * field.width as u64),
        5 => chooser.below(4),
        6 => most - chooser.below(3),
        7 => most / 2 + chooser.below(3),
        8 => 1 << chooser.below(8 * field.width as u64),
        9 => chooser.below(300),
        10 => chooser.0.next_u64(),
        _ => {
            let from = chooser.of(pieces).expect("one is altered");
            let parsed = fields::of(from);
            chooser.of(&parsed.fields).map_or(0, |other| other.get(&from.bytes))
        }
    };
    value & most
}

/// Omits, doubles, exchanges or imports changes or entries.
fn alter_items(pieces: &[Piece], at: usize, chooser: &mut Chooser) -> Option<(String, Vec<Piece>)> {
    let piece = &pieces[at];
    let mut items: Vec<Vec<u8>> =
        fields::of(piece).items.iter().map(|item| piece.bytes[item.clone()].to_vec()).collect();
    if items.is_empty() {
        return None;
    }
    let (one, other) = (chooser.below(items.len() as u64) as usize, chooser.below(items.len() as u64) as usize);
    let done = match chooser.below(4) {
        0 => {
            items.remove(one);
            format!("item {one} is left out")
        }
        1 => {
            items.insert(other, items[one].clone());
            format!("item {one} is there again as {other}")
        }
        2 => {
            items.swap(one, other);
            format!("items {one} and {other} are exchanged")
        }
        _ => {
            let are_alike = |it: &&Piece| (it.kind == Kind::Unit) == (piece.kind == Kind::Unit);
            let others: Vec<&Piece> = pieces.iter().filter(are_alike).collect();
            let from = chooser.of(&others)?;
            let parsed = fields::of(from);
            let item = chooser.of(&parsed.items)?;
            items.insert(one, from.bytes[item.clone()].to_vec());
            format!("an item of block {} of device {} is brought in as {one}", from.blocks[0], from.device)
        }
    };
    let altered = with_items(piece, &items)?;
    let copies = pieces.iter().filter(|it| it.kind == piece.kind && it.same == piece.same && it.bytes == piece.bytes);
    let altered = copies.map(|copy| Piece { device: copy.device, blocks: copy.blocks.clone(), ..altered.clone() });
    Some((words(piece, &done), altered.collect()))
}

/// Returns the piece with these changes or entries; nothing if they do not fit into it. A frame gets them in one
/// record.
fn with_items(piece: &Piece, items: &[Vec<u8>]) -> Option<Piece> {
    let (head, length_at) = if piece.kind == Kind::Unit { (44, 12) } else { (HEAD_BYTES, 36) };
    let mut bytes = piece.bytes[..head].to_vec();
    if piece.kind == Kind::Frame {
        let length = 8 + items.iter().map(Vec::len).sum::<usize>();
        bytes.extend_from_slice(&(length as u32).to_le_bytes());
        bytes.extend_from_slice(&piece.bytes[HEAD_BYTES + 4..HEAD_BYTES + 12]);
        Field { at: 32, width: 4 }.set(&mut bytes, 1);
    }
    items.iter().for_each(|item| bytes.extend_from_slice(item));
    let length = bytes.len() - head;
    Field { at: length_at, width: 4 }.set(&mut bytes, length as u64);
    let blocks = bytes.len().div_ceil(BLOCK_BYTES);
    if blocks > piece.blocks.len() {
        return None;
    }
    bytes.resize(blocks * BLOCK_BYTES, 0);
    Some(Piece { bytes, blocks: piece.blocks[..blocks].to_vec(), ..piece.clone() })
}

/// Exchanges the bytes of two pieces of a kind.
fn exchange(pieces: &[Piece], at: usize, chooser: &mut Chooser) -> Option<(String, Vec<Piece>)> {
    let piece = &pieces[at];
    let alike: Vec<&Piece> =
        pieces.iter().filter(|it| it.kind == piece.kind && it.blocks.len() == piece.blocks.len()).collect();
    let other = *chooser.of(&alike)?;
    let one = Piece { bytes: other.bytes.clone(), ..piece.clone() };
    let two = Piece { bytes: piece.bytes.clone(), ..other.clone() };
    Some((
        words(piece, &format!("exchanged with block {} of device {}", other.blocks[0], other.device)),
        vec![one, two],
    ))
}
