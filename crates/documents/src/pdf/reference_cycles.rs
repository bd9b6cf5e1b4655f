//! Removes cycles of references in a broken PDF, because the library would follow them until the
//! stack overflows. Valid documents have none.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use pdf_extract::content::Content;
use pdf_extract::{Dictionary, Document, Object, ObjectId, Stream};

/// For each object, the objects that it refers to.
type References = BTreeMap<ObjectId, Vec<ObjectId>>;

/// Removes all cycles that the library would follow.
pub(super) fn remove_cycles(document: &mut Document) {
    remove_cyclic_parents(document);
    empty_cyclic_forms(document);
}

/// Removes `Parent` entries that form a cycle. The library follows these entries, because a page
/// inherits resources from its parent (ISO 32000-1 section 7.7.3.4).
fn remove_cyclic_parents(document: &mut Document) {
    let remove = |document: &mut Document, id: ObjectId| {
        if let Ok(node) = document.get_dictionary_mut(id) {
            node.remove(b"Parent");
        }
    };
    // The root of the page tree must not have a parent. If the root is part of a cycle, removing
    // its `Parent` breaks the cycle, and the pages keep theirs.
    let root = document
        .catalog()
        .and_then(|catalog| catalog.get(b"Pages"))
        .and_then(Object::as_reference);
    if let Ok(root) = root {
        remove(document, root);
    }
    let mut parents = References::new();
    for (id, object) in &document.objects {
        if let Ok(parent) = object.as_dict().and_then(|node| node.get(b"Parent")) {
            parents.insert(*id, referred(document, parent).into_iter().collect());
        }
    }
    for id in ends_of_cycles(&parents) {
        remove(document, id);
    }
}

/// Empties form XObjects (ISO 32000-1 section 8.10) that draw themselves, directly or through other
/// forms. Also empties XObjects of other types, such as images, because the library would parse
/// them as forms.
fn empty_cyclic_forms(document: &mut Document) {
    let mut by_name: HashMap<&[u8], BTreeSet<ObjectId>> = HashMap::new();
    for object in document.objects.values() {
        for (name, id) in xobjects(document, object).into_iter().flatten() {
            by_name.entry(name).or_default().insert(id);
        }
    }
    let mut empty = Vec::new();
    let mut draws = References::new();
    for id in by_name.values().flatten() {
        let Ok(object) = document.get_object(*id) else {
            continue;
        };
        let Ok(stream) = object.as_stream() else {
            continue;
        };
        let subtype = stream.dict.get(b"Subtype").and_then(Object::as_name);
        if subtype.is_ok_and(|name| name != b"Form") {
            empty.push(*id);
        } else if let Entry::Vacant(form) = draws.entry(*id) {
            let names = drawn_names(stream);
            let drawn = match xobjects(document, object) {
                Some(own) => own
                    .filter(|(name, _)| names.iter().any(|drawn| drawn == name))
                    .map(|(_, id)| id)
                    .collect(),
                // A form without resources uses those of the page or form that draws it. This may
                // be any page or form in the document. So the form may seem to draw itself although
                // it does not, and is then emptied.
                None => names
                    .iter()
                    .filter_map(|name| by_name.get(name.as_slice()))
                    .flatten()
                    .copied()
                    .collect(),
            };
            form.insert(drawn);
        }
    }
    empty.extend(ends_of_cycles(&draws));
    for id in empty {
        if let Ok(stream) = document.get_object_mut(id).and_then(Object::as_stream_mut) {
            stream.set_plain_content(Vec::new());
        }
    }
}

/// Returns the names and ids in the `XObject` resources of a page or form. Returns `None` if it has
/// no resources.
fn xobjects<'a>(
    document: &'a Document,
    object: &'a Object,
) -> Option<impl Iterator<Item = (&'a [u8], ObjectId)>> {
    let dictionary = match object {
        Object::Dictionary(dictionary) => dictionary,
        Object::Stream(stream) => &stream.dict,
        _ => return None,
    };
    let resources = document.get_dict_in_dict(dictionary, b"Resources").ok()?;
    let listed = document.get_dict_in_dict(resources, b"XObject");
    Some(
        listed
            .into_iter()
            .flat_map(Dictionary::iter)
            .filter_map(|(name, object)| Some((name.as_slice(), referred(document, object)?))),
    )
}

/// Returns the id of the object that a reference leads to, possibly through other references.
fn referred(document: &Document, reference: &Object) -> Option<ObjectId> {
    document.dereference(reference).ok()?.0
}

/// Returns the names of the XObjects that the content of a form draws.
fn drawn_names(form: &Stream) -> Vec<Vec<u8>> {
    let content = form.get_plain_content();
    // If the content cannot be decompressed, the library reads it as it is, so do the same.
    let content = content.unwrap_or_else(|_| form.content.clone());
    let operations = Content::decode(&content).map_or_else(|_| Vec::new(), |all| all.operations);
    operations
        .iter()
        .filter(|operation| operation.operator == "Do")
        .filter_map(|operation| operation.operands.first()?.as_name().ok())
        .map(<[u8]>::to_vec)
        .collect()
}

/// Returns objects whose references, if removed, leave no cycle.
fn ends_of_cycles(references: &References) -> Vec<ObjectId> {
    let mut ends = Vec::new();
    // Maps each visited object to whether the search has finished with it. If not, the object is on
    // the current path, so a reference to it closes a cycle.
    let mut finished: HashMap<ObjectId, bool> = HashMap::new();
    for (start, next) in references {
        if finished.contains_key(start) {
            continue;
        }
        finished.insert(*start, false);
        let mut path = vec![(*start, next.iter())];
        while let Some((id, rest)) = path.last_mut() {
            let Some(next) = rest.next() else {
                finished.insert(*id, true);
                path.pop();
                continue;
            };
            match finished.get(next) {
                Some(true) => {}
                Some(false) => ends.push(*id),
                None => {
                    if let Some(after) = references.get(next) {
                        finished.insert(*next, false);
                        path.push((*next, after.iter()));
                    }
                }
            }
        }
    }
    ends
}
