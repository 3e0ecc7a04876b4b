SELECT
  id,
  article,
  cents * quantity AS cents
FROM orders
