# 证书：每项检查的陈述；`.otherwise` 说明未成立时的含义。

mark-refuted = 【被推翻】
mark-unknown = 【未知】
mark-not-applicable = 【不适用】
