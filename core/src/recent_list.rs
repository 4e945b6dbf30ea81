//! A list of the newest items of something that happens again and again. A copy of the list costs one counter. A change of a shared list
//! copies one pointer per item, so the list must be short.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecentList<T>(Arc<Vec<Arc<T>>>);

impl<T> Default for RecentList<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> RecentList<T> {
    /// Adds an item, and drops the oldest ones beyond `most`.
    pub(crate) fn push(&mut self, item: T, most: usize) {
        let items = Arc::make_mut(&mut self.0);
        items.push(Arc::new(item));
        items.drain(..items.len().saturating_sub(most));
    }

    pub(crate) fn retain(&mut self, mut wanted: impl FnMut(&T) -> bool) {
        if !self.iter().all(&mut wanted) {
            Arc::make_mut(&mut self.0).retain(|item| wanted(item));
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.0.iter().map(Arc::as_ref)
    }

    pub fn last(&self) -> Option<&T> {
        self.0.last().map(Arc::as_ref)
    }
}

impl<T> FromIterator<T> for RecentList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(Arc::new(items.into_iter().map(Arc::new).collect()))
    }
}

impl<T: Clone> RecentList<T> {
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        Arc::make_mut(&mut self.0).last_mut().map(Arc::make_mut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_items_are_dropped_and_a_copy_stays_as_it_was() {
        let mut list = RecentList::default();
        (1..=4).for_each(|number| list.push(number, 3));
        let before = list.clone();
        list.retain(|number| *number != 3);
        *list.last_mut().unwrap() = 9;
        assert_eq!(list.iter().copied().collect::<Vec<_>>(), [2, 9]);
        assert_eq!(before.iter().copied().collect::<Vec<_>>(), [2, 3, 4]);
    }
}
