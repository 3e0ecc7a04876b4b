SELECT window(at, '1 minute').start AS minute,
       city,
       count(*) AS orders,
       sum(cents) AS cents
FROM valid
JOIN customers ON customer = name
GROUP BY window(at, '1 minute'), city
