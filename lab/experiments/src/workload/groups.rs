use spray_fabric::Network;

pub(crate) fn leaves(network: &Network) -> Vec<usize> {
    (0..network.hosts.len()).map(|host| network.leaf_of(host)).collect()
}

pub(crate) fn pods(network: &Network) -> Vec<usize> {
    let tiers = network.tiers();
    leaves(network).into_iter().map(|leaf| tiers.pod[leaf]).collect()
}
