//! A host's free slots. Most hosts have one slot, so one is kept in place.

use crate::permit::GapReason;
use crate::tick::Tick;

/// A slot between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) last_end: Tick,
    /// The moment that was promised when that request ended; the gap may have grown since.
    pub(crate) next_at: Tick,
    pub(crate) why: GapReason,
}

/// The free slots that were used before, in no order.
#[derive(Clone, Debug)]
pub(crate) enum Slots {
    None,
    One(Slot),
    /// In a box, so that this is no larger than a slot.
    #[expect(
        clippy::box_collection,
        reason = "three words would be more than a slot"
    )]
    Many(Box<Vec<Slot>>),
}

impl Slots {
    pub(crate) fn as_slice(&self) -> &[Slot] {
        match self {
            Slots::None => &[],
            Slots::One(slot) => std::slice::from_ref(slot),
            Slots::Many(slots) => slots,
        }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [Slot] {
        match self {
            Slots::None => &mut [],
            Slots::One(slot) => std::slice::from_mut(slot),
            Slots::Many(slots) => slots,
        }
    }

    pub(crate) fn push(&mut self, slot: Slot) {
        match self {
            Slots::None => *self = Slots::One(slot),
            Slots::One(one) => *self = Slots::Many(Box::new(vec![*one, slot])),
            Slots::Many(slots) => slots.push(slot),
        }
    }

    /// Takes a slot out, by its place in the slice; the order changes.
    pub(crate) fn take(&mut self, index: usize) -> Slot {
        match self {
            Slots::None => unreachable!("invariant: an index of the slice"),
            Slots::One(slot) => {
                let slot = *slot;
                *self = Slots::None;
                slot
            }
            Slots::Many(slots) => {
                let slot = slots.swap_remove(index);
                match slots.as_slice() {
                    [] => *self = Slots::None,
                    [last] => *self = Slots::One(*last),
                    _ => {}
                }
                slot
            }
        }
    }
}

impl FromIterator<Slot> for Slots {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> Slots {
        let mut all = Slots::None;
        slots.into_iter().for_each(|slot| all.push(slot));
        all
    }
}

impl PartialEq for Slots {
    fn eq(&self, other: &Slots) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Slots {}

#[cfg(test)]
mod tests {
    use super::{Slot, Slots};

    #[test]
    fn ours_no_slots_are_as_small_as_one() {
        assert_eq!(size_of::<Slots>(), size_of::<Slot>());
    }
}
