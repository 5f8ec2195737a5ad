# The certificate: what every check says, and in `.otherwise` what it means when it did not hold.

mark-refuted = [refuted]
mark-unknown = [unknown]
mark-not-applicable = [does not apply]
