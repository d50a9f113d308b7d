use super::*;

fn node(left: &[u8], right: &[u8]) -> Vec<u8> {
    hash(&[&[1], left, right])
}

/// The root of leaves as RFC 9162 defines it, and the path of one of them.
fn tree(leaves: &[Vec<u8>], index: usize) -> (Vec<u8>, Vec<Base64>) {
    if let [leaf] = leaves {
        return (leaf.clone(), Vec::new());
    }
    let split = leaves.len().next_power_of_two() / 2;
    let (left, right) = leaves.split_at(split);
    if index < split {
        let (root, mut path) = tree(left, index);
        let (other, _) = tree(right, 0);
        path.push(Base64(other.clone()));
        (node(&root, &other), path)
    } else {
        let (root, mut path) = tree(right, index - split);
        let (other, _) = tree(left, 0);
        path.push(Base64(other.clone()));
        (node(&other, &root), path)
    }
}

#[test]
fn c_48_every_leaf_of_every_small_tree_leads_to_its_root_and_to_no_other() {
    for size in 1..=33_usize {
        let leaves: Vec<_> = (0..size).map(|leaf| hash(&[&[0], &leaf.to_be_bytes()])).collect();
        for (index, leaf) in leaves.iter().enumerate() {
            let (root, path) = tree(&leaves, index);
            let found = |index: usize, size: usize, path: &[Base64]| {
                tree_root(leaf.clone(), u64::try_from(index).unwrap(), u64::try_from(size).unwrap(), path)
            };
            assert_eq!(found(index, size, &path).as_ref(), Some(&root), "{index} of {size}");
            for other in (0..=size).filter(|other| *other != index) {
                assert_ne!(found(other, size, &path).as_ref(), Some(&root), "{index} of {size} as {other}");
            }
            let mut longer = path.clone();
            longer.push(Base64(root.clone()));
            assert_ne!(found(index, size, &longer).as_ref(), Some(&root), "{index} of {size}");
            if let Some((_, shorter)) = path.split_last() {
                assert_ne!(found(index, size, shorter).as_ref(), Some(&root), "{index} of {size}");
            }
        }
    }
}

#[test]
fn limits_keyless_a_proof_of_more_hashes_is_not_followed() {
    let proof = |count: usize| InclusionProof {
        log_index: Number(0),
        tree_size: Number(1),
        root_hash: Base64(Vec::new()),
        hashes: vec![Base64(Vec::new()); count],
        checkpoint: Checkpoint { envelope: String::new() },
    };
    let told = |count| proof(count).holds(b"", b"", &EllipticKey::P256(b"")).unwrap_err();
    assert_eq!(told(MOST_HASHES), "has an entry that is not in the log: its proof does not hold");
    assert_eq!(told(MOST_HASHES + 1), format!("has a proof of 65 hashes, and the limit is {MOST_HASHES}"));
}
